#pragma once
#include <limits>

#include "runtime/kernels/rows/softmax_loops.h"
#include "runtime/kernels/sums/ordered_sum_oracle.h"

/// What softmax_loops.h computes, one number after the other. Slow; for tests and the self-test at start.
namespace lockstep::kernels {

/// The tree's sum of term(i) over a row.
template <class T, class Term>
T row_sum_oracle(int64_t width, const Term& term) {
  const auto tree = SumTree::over_elements(width);
  return node_oracle(tree, {tree.height, 0}, [&](int64_t start, int64_t end) {
    return lanes_oracle<T>(start, end, [&](T sum, int64_t i) { return sum + term(i); });
  });
}

template <class T>
T row_maximum_oracle(int64_t width, const T* row) {
  T greatest = -std::numeric_limits<T>::infinity();
  for (int64_t i = 0; i < width; ++i) greatest = row[i] > greatest ? row[i] : greatest;
  return greatest + T(0);
}

template <class T>
void softmax_oracle(loops::Rows rows, const T* x, T* out) {
  for (int64_t r = 0; r < rows.count; ++r, x += rows.width) {
    const T shift = row_maximum_oracle(rows.width, x);
    const auto term = [&](int64_t i) { return elementary::normal_exp(x[i] - shift); };
    const T sum = row_sum_oracle<T>(rows.width, term);
    for (int64_t i = 0; i < rows.width; ++i) *out++ = term(i) / sum;
  }
}

template <class T>
void log_softmax_oracle(loops::Rows rows, const T* x, T* out) {
  for (int64_t r = 0; r < rows.count; ++r, x += rows.width) {
    const T shift = row_maximum_oracle(rows.width, x);
    const T sum = row_sum_oracle<T>(rows.width, [&](int64_t i) { return elementary::normal_exp(x[i] - shift); });
    for (int64_t i = 0; i < rows.width; ++i) *out++ = (x[i] - shift) - elementary::log(sum);
  }
}

template <class T>
void softmax_backward_oracle(loops::Rows rows, const T* g, const T* y, T* out) {
  for (int64_t r = 0; r < rows.count; ++r, g += rows.width, y += rows.width) {
    const T sum = row_sum_oracle<T>(rows.width, [&](int64_t i) { return g[i] * y[i]; });
    for (int64_t i = 0; i < rows.width; ++i) {
      const T own = g[i] * y[i], shared = y[i] * sum;
      *out++ = own - shared;
    }
  }
}

template <class T>
void log_softmax_backward_oracle(loops::Rows rows, const T* g, const T* y, T* out) {
  for (int64_t r = 0; r < rows.count; ++r, g += rows.width, y += rows.width) {
    const T sum = row_sum_oracle<T>(rows.width, [&](int64_t i) { return g[i]; });
    for (int64_t i = 0; i < rows.width; ++i) {
      const T shared = elementary::normal_exp(y[i]) * sum;
      *out++ = g[i] - shared;
    }
  }
}

}  // namespace lockstep::kernels

#include "runtime/kernels/rows/softmax_loops.h"

#include <limits>

#include "core/elementary/elementary.h"
#include "runtime/kernels/simd/best_instruction_set.h"
#include "runtime/kernels/sums/node_sum.h"
#include "runtime/kernels/sums/sum_tree.h"

namespace lockstep::kernels::loops {
namespace {

/// Of NaN any other: what is made of the row is NaN all the same.
template <class T>
LOCKSTEP_PORTABLE T maximum(int64_t width, const T* x) {
  constexpr int64_t kBlock = 64;
  T block[kBlock];
  for (T& each : block) each = -std::numeric_limits<T>::infinity();
  int64_t i = 0;
  for (; i + kBlock <= width; i += kBlock)
    for (int64_t j = 0; j < kBlock; ++j) block[j] = x[i + j] > block[j] ? x[i + j] : block[j];
  for (int64_t j = 0; i + j < width; ++j) block[j] = x[i + j] > block[j] ? x[i + j] : block[j];
  for (int64_t half = kBlock / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) block[j] = block[j + half] > block[j] ? block[j + half] : block[j];
  return block[0] + T(0);
}

template <class T>
struct Softmax {
  LOCKSTEP_PORTABLE static void run(Rows rows, NodeWork row, const T* x, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, x += rows.width, out += rows.width) {
      const T shift = maximum(rows.width, x);
      for (int64_t i = 0; i < rows.width; ++i) out[i] = elementary::normal_exp(x[i] - shift);
      const T* exponentials = out;
      const T sum = sum_row<T>(
          row, [exponentials](int64_t i) __attribute__((always_inline)) { return exponentials[i]; });
      for (int64_t i = 0; i < rows.width; ++i) out[i] = out[i] / sum;
    }
  }
};

template <class T>
struct LogSoftmax {
  LOCKSTEP_PORTABLE static void run(Rows rows, NodeWork row, const T* x, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, x += rows.width, out += rows.width) {
      const T shift = maximum(rows.width, x);
      const T sum = sum_row<T>(
          row, [ x, shift ](int64_t i) __attribute__((always_inline)) { return elementary::normal_exp(x[i] - shift); });
      const T log_sum = elementary::log(sum);
      for (int64_t i = 0; i < rows.width; ++i) out[i] = (x[i] - shift) - log_sum;
    }
  }
};

template <class T>
struct SoftmaxBackward {
  LOCKSTEP_PORTABLE static void run(Rows rows, NodeWork row, const T* g, const T* y, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, g += rows.width, y += rows.width, out += rows.width) {
      const T sum = sum_row<T>(
          row, [ g, y ](int64_t i) __attribute__((always_inline)) { return g[i] * y[i]; });
      for (int64_t i = 0; i < rows.width; ++i) out[i] = g[i] * y[i] - y[i] * sum;
    }
  }
};

template <class T>
struct LogSoftmaxBackward {
  LOCKSTEP_PORTABLE static void run(Rows rows, NodeWork row, const T* g, const T* y, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, g += rows.width, y += rows.width, out += rows.width) {
      const T sum = sum_row<T>(
          row, [g](int64_t i) __attribute__((always_inline)) { return g[i]; });
      for (int64_t i = 0; i < rows.width; ++i) out[i] = g[i] - elementary::normal_exp(y[i]) * sum;
    }
  }
};

NodeWork whole(int64_t width) {
  const auto tree = SumTree::over_elements(width);
  return {tree.leaf, tree.leaf_count(), width, 1, 1};
}

}  // namespace

template <class T>
void softmax(Rows rows, const T* x, T* out, InstructionSet set) {
  on_instruction_set<Softmax<T>>(set, rows, whole(rows.width), x, out);
}

template <class T>
void log_softmax(Rows rows, const T* x, T* out, InstructionSet set) {
  on_instruction_set<LogSoftmax<T>>(set, rows, whole(rows.width), x, out);
}

template <class T>
void softmax_backward(Rows rows, const T* g, const T* y, T* out, InstructionSet set) {
  on_instruction_set<SoftmaxBackward<T>>(set, rows, whole(rows.width), g, y, out);
}

template <class T>
void log_softmax_backward(Rows rows, const T* g, const T* y, T* out, InstructionSet set) {
  on_instruction_set<LogSoftmaxBackward<T>>(set, rows, whole(rows.width), g, y, out);
}

#define LOCKSTEP_INSTANTIATE(T)                                                 \
  template void softmax(Rows, const T*, T*, InstructionSet);                    \
  template void log_softmax(Rows, const T*, T*, InstructionSet);                \
  template void softmax_backward(Rows, const T*, const T*, T*, InstructionSet); \
  template void log_softmax_backward(Rows, const T*, const T*, T*, InstructionSet)
LOCKSTEP_INSTANTIATE(float);
LOCKSTEP_INSTANTIATE(double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::loops

#include "runtime/kernels/softmax_loops.h"

#include <algorithm>
#include <limits>

#include "core/elementary.h"
#include "runtime/kernels/best_instruction_set.h"
#include "runtime/kernels/node_sum.h"
#include "runtime/kernels/sum_tree.h"

namespace lockstep::kernels::loops {
namespace {

/// Of NaN any other: what is made of the row is NaN all the same.
template <class T>
LOCKSTEP_PORTABLE T maximum(int64_t width, const T* x) {
  constexpr int64_t kLanes = 16;
  T lanes[kLanes];
  for (T& lane : lanes) lane = -std::numeric_limits<T>::infinity();
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
  T greatest = lanes[0];
  for (int64_t lane = 1; lane < kLanes; ++lane) greatest = lanes[lane] > greatest ? lanes[lane] : greatest;
  for (; i < width; ++i) greatest = x[i] > greatest ? x[i] : greatest;
  return greatest + T(0);
}

/// The tree's sum of a row; `row` is its one node.
template <class T>
LOCKSTEP_PORTABLE T sum_of(const NodeWork& row, const T* x) {
  T sums[SumTree::kMostLeaves];
  SumRow<T>::run(row, x, sums);
  return sums[0];
}

/// out = exp(x - shift); returns its sum.
template <class T>
LOCKSTEP_PORTABLE T exponentials(const NodeWork& row, const T* x, T shift, T* __restrict out) {
  for (int64_t i = 0; i < row.elements; ++i) out[i] = elementary::exp(x[i] - shift);
  return sum_of(row, static_cast<const T*>(out));
}

template <class T>
struct Softmax {
  LOCKSTEP_PORTABLE static void run(Rows rows, NodeWork row, const T* x, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, x += rows.width, out += rows.width) {
      const T sum = exponentials(row, x, maximum(rows.width, x), out);
      for (int64_t i = 0; i < rows.width; ++i) out[i] = out[i] / sum;
    }
  }
};

template <class T>
struct LogSoftmax {
  LOCKSTEP_PORTABLE static void run(Rows rows, NodeWork row, const T* x, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, x += rows.width, out += rows.width) {
      const T shift = maximum(rows.width, x);
      const T log_sum = elementary::log(exponentials(row, x, shift, out));
      for (int64_t i = 0; i < rows.width; ++i) out[i] = (x[i] - shift) - log_sum;
    }
  }
};

template <class T>
struct SoftmaxBackward {
  LOCKSTEP_PORTABLE static void run(Rows rows, NodeWork row, const T* g, const T* y, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, g += rows.width, y += rows.width, out += rows.width) {
      for (int64_t i = 0; i < rows.width; ++i) out[i] = g[i] * y[i];
      const T sum = sum_of(row, static_cast<const T*>(out));
      for (int64_t i = 0; i < rows.width; ++i) out[i] = out[i] - y[i] * sum;
    }
  }
};

template <class T>
struct LogSoftmaxBackward {
  LOCKSTEP_PORTABLE static void run(Rows rows, NodeWork row, const T* g, const T* y, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, g += rows.width, y += rows.width, out += rows.width) {
      const T sum = sum_of(row, g);
      for (int64_t i = 0; i < rows.width; ++i) out[i] = g[i] - elementary::exp(y[i]) * sum;
    }
  }
};

/// A row of nothing has one leaf of nothing.
NodeWork whole(int64_t width) {
  const auto tree = SumTree::over_elements(width);
  return {tree.leaf, std::max<int64_t>(tree.leaf_count(), 1), width, 1, 1};
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

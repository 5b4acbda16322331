#include "core/elementary/elementary.h"
#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/cuda/canonical/tree_order.h"

namespace lockstep::cuda::canonical {
namespace {

/// Of x [outer, count, inner], whose first element is element `first` of the sum.
struct Place {
  int64_t first, outer, count, inner;

  explicit Place(const OrderedSum& sum) : first(sum.first), outer(sum.outer), count(sum.count), inner(sum.inner) {}
  __device__ int64_t of(int64_t row, int64_t element, int64_t column) const {
    return (row * count + element - first) * inner + column;
  }
};

__global__ void sum_rows(NodeLeaves leaves, Place place, const float* x, float* out) {
  for (int64_t row = own_row(); row < place.outer; row += all_rows()) {
    const float sum = row_sum(leaves, [&](int64_t i) { return x[place.of(row, i, 0)]; });
    if (lane_of_row() == 0) out[row] = sum;
  }
}

__global__ void sum_exponentials(NodeLeaves leaves, Place place, const float* x, const float* shift, float* out) {
  for (int64_t row = own_row(); row < place.outer; row += all_rows()) {
    const float sum =
        row_sum(leaves, [&](int64_t i) { return elementary::normal_exp(x[place.of(row, i, 0)] - shift[row]); });
    if (lane_of_row() == 0) out[row] = sum;
  }
}

/// A thread has a column, and all of its lanes.
__global__ void sum_columns(NodeLeaves leaves, Place place, const float* x, float* out) {
  for (int64_t i = own_thread(); i < place.outer * place.inner; i += all_threads()) {
    const int64_t row = i / place.inner, column = i % place.inner;
    out[i] = node_sum(leaves, [&](int64_t start, int64_t end) {
      float lanes[kLanes] = {};
      for (int64_t group = start; group < end; group += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
          if (group + lane < end) lanes[lane] = lanes[lane] + x[place.of(row, group + lane, column)];
      for (int apart = kLanes / 2; apart > 0; apart /= 2)
        for (int lane = 0; lane < apart; ++lane) lanes[lane] = lanes[lane] + lanes[lane + apart];
      return lanes[0];
    });
  }
}

__global__ void sum_norm_gradients(NodeLeaves leaves, Place place, const float* g, const float* x, const float* r,
                                   float* out) {
  for (int64_t i = own_thread(); i < place.outer * place.inner; i += all_threads()) {
    const int64_t row = i / place.inner, column = i % place.inner;
    out[i] = node_sum(leaves, [&](int64_t start, int64_t end) {
      float chain = 0;
      for (int64_t element = start; element < end; ++element) {
        const int64_t at = place.of(row, element, column);
        chain = portable::fma(g[at], x[at] * r[at / place.inner], chain);
      }
      return chain + 0.0f;
    });
  }
}

/// run(leaves, out) for each node.
template <class Run>
void for_each_node(const OrderedSum& sum, float* out, const Run& run) {
  for (const auto& node : cover(sum.tree, sum.first, sum.count)) {
    run(leaves_of(sum.tree, node), out);
    out += sum.outer * sum.inner;
  }
}

}  // namespace

void ordered_sum(const OrderedSum& sum, const float* x, float* out) {
  for_each_node(sum, out, [&](const NodeLeaves& leaves, float* node) {
    if (sum.inner == 1) return launch("ordered_sum", sum_rows, sum.outer * kLanes, leaves, Place(sum), x, node);
    launch("ordered_sum", sum_columns, sum.outer * sum.inner, leaves, Place(sum), x, node);
  });
}

void ordered_exponential_sum(const OrderedSum& sum, const float* x, const float* shift, float* out) {
  for_each_node(sum, out, [&](const NodeLeaves& leaves, float* node) {
    launch("ordered_exponential_sum", sum_exponentials, sum.outer * kLanes, leaves, Place(sum), x, shift, node);
  });
}

void ordered_norm_gradient(const OrderedSum& sum, const float* g, const float* x, const float* r, float* out) {
  for_each_node(sum, out, [&](const NodeLeaves& leaves, float* node) {
    launch("ordered_norm_gradient", sum_norm_gradients, sum.outer * sum.inner, leaves, Place(sum), g, x, r, node);
  });
}

}  // namespace lockstep::cuda::canonical

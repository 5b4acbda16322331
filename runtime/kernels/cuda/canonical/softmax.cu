#include "core/elementary/elementary.h"
#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/cuda/canonical/tree_order.h"

namespace lockstep::cuda::canonical {
namespace {

/// The greatest of a row, NaN left out, and +0 where it is zero.
__device__ float row_maximum(int64_t width, const float* row) {
  float greatest = -INFINITY;
  for (int64_t i = lane_of_row(); i < width; i += kLanes) greatest = row[i] > greatest ? row[i] : greatest;
  for (int apart = kLanes / 2; apart > 0; apart /= 2) {
    const float other = __shfl_xor_sync(threads_of_row(), greatest, apart, kLanes);
    greatest = other > greatest ? other : greatest;
  }
  return greatest + 0.0f;
}

template <bool kLog>
__global__ void softmax_rows(NodeLeaves leaves, int64_t rows, int64_t width, const float* x, float* out) {
  for (int64_t r = own_row(); r < rows; r += all_rows()) {
    const float* row = x + r * width;
    const float shift = row_maximum(width, row);
    const float sum = row_sum(leaves, [&](int64_t i) { return elementary::normal_exp(row[i] - shift); });
    const float log_sum = kLog ? elementary::log(sum) : 0.0f;
    for (int64_t i = lane_of_row(); i < width; i += kLanes)
      out[r * width + i] = kLog ? (row[i] - shift) - log_sum : elementary::normal_exp(row[i] - shift) / sum;
  }
}

template <bool kLog>
__global__ void softmax_gradients(NodeLeaves leaves, int64_t rows, int64_t width, const float* gradient,
                                  const float* results, float* out) {
  for (int64_t r = own_row(); r < rows; r += all_rows()) {
    const float *g = gradient + r * width, *y = results + r * width;
    const float sum = row_sum(leaves, [&](int64_t i) { return kLog ? g[i] : g[i] * y[i]; });
    for (int64_t i = lane_of_row(); i < width; i += kLanes)
      out[r * width + i] = kLog ? g[i] - elementary::normal_exp(y[i]) * sum : g[i] * y[i] - y[i] * sum;
  }
}

NodeLeaves leaves_of_row(Rows rows) {
  const auto tree = SumTree::over_elements(rows.width);
  return leaves_of(tree, {tree.height, 0});
}

}  // namespace

void softmax(Rows rows, const float* x, float* out) {
  launch("softmax", softmax_rows<false>, rows.count * kLanes, leaves_of_row(rows), rows.count, rows.width, x, out);
}
void log_softmax(Rows rows, const float* x, float* out) {
  launch("log_softmax", softmax_rows<true>, rows.count * kLanes, leaves_of_row(rows), rows.count, rows.width, x, out);
}
void softmax_backward(Rows rows, const float* g, const float* y, float* out) {
  launch("softmax_backward", softmax_gradients<false>, rows.count * kLanes, leaves_of_row(rows), rows.count, rows.width,
         g, y, out);
}
void log_softmax_backward(Rows rows, const float* g, const float* y, float* out) {
  launch("log_softmax_backward", softmax_gradients<true>, rows.count * kLanes, leaves_of_row(rows), rows.count,
         rows.width, g, y, out);
}

}  // namespace lockstep::cuda::canonical

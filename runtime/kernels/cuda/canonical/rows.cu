#include "core/elementary/elementary.h"
#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/cuda/canonical/tree_order.h"

namespace lockstep::cuda::canonical {
namespace {

__global__ void norm_rows(int64_t rows, int64_t width, const float* x, const float* weight, float* y,
                          float* reciprocals, float epsilon) {
  for (int64_t r = own_row(); r < rows; r += all_rows()) {
    const float* row = x + r * width;
    const float sum = lanes_sum(0, width, [&](int64_t i) { return row[i] * row[i]; });
    const float reciprocal = 1.0f / portable::sqrt(sum / static_cast<float>(width) + epsilon);
    for (int64_t i = lane_of_row(); i < width; i += kLanes) y[r * width + i] = row[i] * reciprocal * weight[i];
    if (lane_of_row() == 0) reciprocals[r] = reciprocal;
  }
}

__global__ void norm_gradients(int64_t rows, int64_t width, const float* gradient, const float* x,
                               const float* reciprocals, const float* weight, float* dx) {
  for (int64_t r = own_row(); r < rows; r += all_rows()) {
    const float *g = gradient + r * width, *row = x + r * width;
    const float reciprocal = reciprocals[r];
    const float sum = lanes_sum(0, width, [&](int64_t i) { return g[i] * weight[i] * row[i]; });
    const float mean = sum * reciprocal * reciprocal / static_cast<float>(width);
    for (int64_t i = lane_of_row(); i < width; i += kLanes)
      dx[r * width + i] = reciprocal * (g[i] * weight[i] - row[i] * mean);
  }
}

__global__ void class_gradients(int64_t rows, int64_t width, const float* gradient, const float* logits,
                                const float* log_sum, const int64_t* target, float* out) {
  for (int64_t r = own_warp(); r < rows; r += all_warps())
    for (int64_t i = own_lane(); i < width; i += kWarp) {
      const float term = elementary::normal_exp(logits[r * width + i] - log_sum[r]) * gradient[r];
      out[r * width + i] = i == target[r] ? term - gradient[r] : term;
    }
}

__global__ void gate_rows(int64_t count, int64_t width, const float* both, float* out) {
  for (int64_t i = own_thread(); i < count; i += all_threads()) {
    const int64_t at = i / width * 2 * width + i % width;
    const float gate = both[at];
    out[i] = gate / (1.0f + elementary::normal_exp(-gate)) * both[at + width];
  }
}

__global__ void gate_gradients(int64_t count, int64_t width, const float* gradient, const float* both, float* out) {
  for (int64_t i = own_thread(); i < count; i += all_threads()) {
    const int64_t at = i / width * 2 * width + i % width;
    const float gate = both[at], up = both[at + width], g = gradient[i];
    const float s = 1.0f / (1.0f + elementary::normal_exp(-gate));
    out[at] = g * up * s * (1.0f + gate * (1.0f - s));
    out[at + width] = g * (gate * s);
  }
}

}  // namespace

void rms_norm(Rows rows, const float* x, const float* weight, float* y, float* reciprocal, float epsilon) {
  launch("rms_norm", norm_rows, rows.count * kLanes, rows.count, rows.width, x, weight, y, reciprocal, epsilon);
}

void rms_norm_input_gradient(Rows rows, const float* g, const float* x, const float* reciprocal, const float* weight,
                             float* dx) {
  launch("rms_norm_input_gradient", norm_gradients, rows.count * kLanes, rows.count, rows.width, g, x, reciprocal,
         weight, dx);
}

void cross_entropy_backward(Rows rows, const float* gradient, const float* logits, const float* log_sum,
                            const int64_t* target, float* out) {
  launch("cross_entropy_backward", class_gradients, rows.count * kWarp, rows.count, rows.width, gradient, logits,
         log_sum, target, out);
}

void swiglu(Rows rows, const float* both, float* out) {
  launch("swiglu", gate_rows, rows.count * rows.width, rows.count * rows.width, rows.width, both, out);
}

void swiglu_backward(Rows rows, const float* gradient, const float* both, float* out) {
  launch("swiglu_backward", gate_gradients, rows.count * rows.width, rows.count * rows.width, rows.width, gradient,
         both, out);
}

}  // namespace lockstep::cuda::canonical

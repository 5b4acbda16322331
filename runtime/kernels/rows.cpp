// RMSNorm and the pieces of cross-entropy, on plain CPU tensors.
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <cmath>

#include "core/error.h"
#include "runtime/kernels/cpu_kernels.h"

namespace lockstep::kernels {
namespace {

/// 16-bit rows are computed in fp32.
Tensor widened(const Tensor& tensor) {
  const auto dtype = tensor.scalar_type();
  return (dtype == c10::kBFloat16 || dtype == c10::kHalf ? tensor.to(c10::kFloat) : tensor).contiguous();
}

struct Rows {
  int64_t count, width;
};

Rows rows_of(const Tensor& x) {
  const int64_t width = x.size(-1);
  return {width > 0 ? x.numel() / width : 0, width};
}

template <class T>
void rms_norm_rows(Rows rows, const T* x, const T* weight, T* y, T* reciprocal, double epsilon) {
  for (int64_t r = 0; r < rows.count; ++r, x += rows.width, y += rows.width) {
    T lanes[16] = {};
    int64_t i = 0;
    for (; i + 16 <= rows.width; i += 16)
      for (int64_t lane = 0; lane < 16; ++lane) lanes[lane] += x[i + lane] * x[i + lane];
    T sum = 0;
    for (; i < rows.width; ++i) sum += x[i] * x[i];
    for (const T lane : lanes) sum += lane;
    const T scale = T(1) / std::sqrt(sum / static_cast<T>(rows.width) + static_cast<T>(epsilon));
    reciprocal[r] = scale;
    for (i = 0; i < rows.width; ++i) y[i] = x[i] * scale * weight[i];
  }
}

/// With n = x r: dx = r (g w - n mean(g w n)), dw = sum over rows of g n.
template <class T>
void rms_norm_backward_rows(Rows rows, const T* g, const T* x, const T* reciprocal, const T* weight, T* dx, T* dw) {
  for (int64_t r = 0; r < rows.count; ++r, g += rows.width, x += rows.width, dx += rows.width) {
    const T scale = reciprocal[r];
    T lanes[16] = {};
    int64_t i = 0;
    for (; i + 16 <= rows.width; i += 16)
      for (int64_t lane = 0; lane < 16; ++lane) lanes[lane] += g[i + lane] * weight[i + lane] * x[i + lane];
    T sum = 0;
    for (; i < rows.width; ++i) sum += g[i] * weight[i] * x[i];
    for (const T lane : lanes) sum += lane;
    const T mean = sum * scale * scale / static_cast<T>(rows.width);
    for (i = 0; i < rows.width; ++i) {
      dx[i] = scale * (g[i] * weight[i] - x[i] * mean);
      dw[i] += g[i] * x[i] * scale;
    }
  }
}

}  // namespace

std::tuple<Tensor, Tensor> rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  const auto wide = widened(x), wide_weight = widened(weight);
  auto y = at::empty_like(wide);
  auto sizes = x.sizes().vec();
  sizes.pop_back();
  auto reciprocal = at::empty(sizes, wide.options());
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "rms_norm", [&] {
    rms_norm_rows<scalar_t>(rows_of(wide), wide.const_data_ptr<scalar_t>(), wide_weight.const_data_ptr<scalar_t>(),
                            y.mutable_data_ptr<scalar_t>(), reciprocal.mutable_data_ptr<scalar_t>(), epsilon);
  });
  return {y.to(x.scalar_type()), reciprocal};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                                             const Tensor& weight) {
  const auto g = widened(gradient), wide = widened(x), r = widened(reciprocal), w = widened(weight);
  auto dx = at::empty_like(wide), dw = at::zeros_like(w);
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "rms_norm_backward", [&] {
    rms_norm_backward_rows<scalar_t>(rows_of(wide), g.const_data_ptr<scalar_t>(), wide.const_data_ptr<scalar_t>(),
                                     r.const_data_ptr<scalar_t>(), w.const_data_ptr<scalar_t>(),
                                     dx.mutable_data_ptr<scalar_t>(), dw.mutable_data_ptr<scalar_t>());
  });
  return {dx.to(x.scalar_type()), dw.to(weight.scalar_type())};
}

Tensor exponential_sum(const Tensor& logits, const Tensor& shift) {
  return at::sum(at::sub(logits, shift.unsqueeze(-1)).exp_(), {-1}, false);
}

Tensor pick_class(const Tensor& logits, const Tensor& target) {
  if (logits.size(-1) == 0) return at::zeros(target.sizes(), logits.options());
  const auto picked = at::gather(logits, -1, at::clamp_min(target, 0).unsqueeze(-1)).squeeze(-1);
  return at::masked_fill(picked, target < 0, 0);
}

Tensor cross_entropy_backward(const Tensor& gradient, const Tensor& logits, const Tensor& log_sum,
                              const Tensor& target) {
  auto result = at::sub(logits, log_sum.unsqueeze(-1)).exp_().mul_(gradient.unsqueeze(-1));
  if (logits.size(-1) == 0) return result;
  const auto at_target = at::masked_fill(gradient, target < 0, 0).neg().unsqueeze(-1);
  return result.scatter_add_(-1, at::clamp_min(target, 0).unsqueeze(-1), at_target);
}

}  // namespace lockstep::kernels

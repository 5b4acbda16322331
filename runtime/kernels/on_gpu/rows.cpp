// Norms and cross-entropy: what sums over the last dimension.
#include <ATen/Functions.h>

#include "runtime/kernels/on_gpu/elements.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/composed.h"

namespace lockstep::on_gpu {
namespace {

/// One for each row.
Tensor numbers(const Tensor& of_rows) { return of_rows.to(c10::kFloat).contiguous(); }

}  // namespace

std::tuple<Tensor, Tensor> rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  const auto element = element_of(x, weight);
  if (!element || x.numel() == 0) return composed::rms_norm(x, weight, epsilon);
  const auto in = x.contiguous(), by = weight.contiguous(), y = at::empty_like(in);
  const auto reciprocal = at::empty(x.sizes().slice(0, x.dim() - 1), x.options().dtype(c10::kFloat));
  cuda::rms_norm(*element, rows_of(in), in.const_data_ptr(), by.const_data_ptr(), static_cast<float>(epsilon),
                 y.mutable_data_ptr(), reciprocal.mutable_data_ptr<float>());
  return {y, reciprocal};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                                             const Tensor& weight) {
  const auto element = element_of(x, gradient, weight);
  if (!element || x.numel() == 0 || reciprocal.scalar_type() != c10::kFloat)
    return composed::rms_norm_backward(gradient, x, reciprocal, weight);
  const auto g = gradient.contiguous(), in = x.contiguous(), by = weight.contiguous(), r = reciprocal.contiguous();
  const auto rows = rows_of(in);
  const auto dx = at::empty_like(in);
  const auto sums = at::empty({cuda::norm_parts(rows), rows.size}, r.options());
  cuda::rms_norm_backward(*element, rows, g.const_data_ptr(), in.const_data_ptr(), r.const_data_ptr<float>(),
                          by.const_data_ptr(), dx.mutable_data_ptr(), sums.mutable_data_ptr<float>());
  return {dx, at::sum(sums, {0}, false).to(weight.scalar_type())};
}

Tensor exponential_sum(const Tensor& logits, const Tensor& shift) {
  const auto element = element_of(logits);
  if (!element || logits.numel() == 0) return composed::exponential_sum(logits, shift);
  const auto in = logits.contiguous(), least = numbers(shift);
  const auto sums = at::empty_like(least);
  cuda::exponential_sum(*element, rows_of(in), in.const_data_ptr(), least.const_data_ptr<float>(),
                        sums.mutable_data_ptr<float>());
  return sums.to(shift.scalar_type());
}

Tensor cross_entropy_backward(const Tensor& gradient, const Tensor& logits, const Tensor& log_sum,
                              const Tensor& target) {
  const auto element = element_of(logits);
  if (!element || logits.numel() == 0 || target.scalar_type() != c10::kLong)
    return composed::cross_entropy_backward(gradient, logits, log_sum, target);
  const auto in = logits.contiguous(), slopes = numbers(gradient), sums = numbers(log_sum);
  const auto wanted = target.contiguous();
  auto out = at::empty_like(in);
  cuda::cross_entropy_backward(*element, rows_of(in), slopes.const_data_ptr<float>(), in.const_data_ptr(),
                               sums.const_data_ptr<float>(), wanted.const_data_ptr<int64_t>(), out.mutable_data_ptr());
  return out;
}

}  // namespace lockstep::on_gpu

// AdamW in one pass, and the squares of the gradient norm.
#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/kernels/on_gpu/elements.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/composed.h"

namespace lockstep::on_gpu {

Tensor sum_of_squares(const Tensor& x) {
  const auto element = element_of(x);
  if (!element || x.numel() == 0) return composed::sum_of_squares(x);
  const auto in = x.contiguous(), sums = at::empty({cuda::square_parts(x.numel())}, x.options().dtype(c10::kDouble));
  cuda::sum_of_squares(*element, in.numel(), in.const_data_ptr(), sums.mutable_data_ptr<double>());
  return at::sum(sums);
}

void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& mean, const Tensor& square,
           double learning_rate, double beta1, double beta2, double epsilon, double weight_decay, double correction1,
           double correction2, double gradient_scale) {
  const bool is_contiguous = parameter.is_contiguous() && mean.is_contiguous() && square.is_contiguous();
  if (!is_contiguous || element_of(parameter, mean, square) != cuda::Element::kFloat32)
    return composed::adamw(parameter, gradient, mean, square, learning_rate, beta1, beta2, epsilon, weight_decay,
                           correction1, correction2, gradient_scale);
  const auto g = gradient.to(c10::kFloat).contiguous();
  LOCKSTEP_CHECK_EQ(g.numel(), parameter.numel());
  cuda::adamw(g.numel(), parameter.mutable_data_ptr<float>(), g.const_data_ptr<float>(), mean.mutable_data_ptr<float>(),
              square.mutable_data_ptr<float>(),
              kernels::loops::adamw_step<float>(learning_rate, beta1, beta2, epsilon, weight_decay, correction1,
                                                correction2, gradient_scale));
}

}  // namespace lockstep::on_gpu

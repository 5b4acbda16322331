#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

/// LibTorch's fused optimizers, parameter by parameter and put together of ops with rows. Arguments are LibTorch's, for
/// its ops of these names.
namespace lockstep::composed {

using Perhaps = std::optional<at::Tensor>;

/// AdamW where the decay is decoupled from the gradient. `Rate`: double, or const at::Tensor&.
template <bool kDecoupled, class Rate>
void fused_adam(at::TensorList parameters, at::TensorList gradients, at::TensorList means, at::TensorList squares,
                at::TensorList largest, at::TensorList steps, Rate lr, double beta1, double beta2, double weight_decay,
                double eps, bool amsgrad, bool maximize, const Perhaps& grad_scale, const Perhaps& found_inf);
void fused_sgd(at::TensorList parameters, at::TensorList gradients, at::TensorList momenta, double weight_decay,
               double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
               const Perhaps& grad_scale, const Perhaps& found_inf);
void fused_sgd_of_tensor(at::TensorList parameters, at::TensorList gradients, at::TensorList momenta,
                         double weight_decay, double momentum, const at::Tensor& lr, double dampening, bool nesterov,
                         bool maximize, bool is_first_step, const Perhaps& grad_scale, const Perhaps& found_inf);
void fused_adagrad(at::TensorList parameters, at::TensorList gradients, at::TensorList sums, at::TensorList steps,
                   double lr, double lr_decay, double weight_decay, double eps, bool maximize,
                   const Perhaps& grad_scale, const Perhaps& found_inf);

}  // namespace lockstep::composed

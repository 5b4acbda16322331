#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

/// Losses whose decompositions write tensors in place that need not be on a mesh, or resize them; arguments and results
/// are LibTorch's, for its ops of these names.
namespace lockstep::composed {

at::Tensor binary_cross_entropy_with_logits(const at::Tensor& self, const at::Tensor& target,
                                            const std::optional<at::Tensor>& weight,
                                            const std::optional<at::Tensor>& pos_weight, int64_t reduction);
at::Tensor soft_margin_loss(const at::Tensor& self, const at::Tensor& target, int64_t reduction);
at::Tensor soft_margin_loss_backward(const at::Tensor& gradient, const at::Tensor& self, const at::Tensor& target,
                                     int64_t reduction);

}  // namespace lockstep::composed

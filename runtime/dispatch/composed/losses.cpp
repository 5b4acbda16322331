#include "runtime/dispatch/composed/losses.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>

#include "core/error.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::composed {
namespace {

using at::Tensor;

Tensor reduced(const Tensor& losses, int64_t reduction) {
  if (reduction == at::Reduction::Mean) return at::mean(losses);
  return reduction == at::Reduction::Sum ? at::sum(losses) : losses;
}

/// A plain number beside an operand on a mesh comes there first: what is computed of it is stored as the domain says.
Tensor beside(const Tensor& operand, const Tensor& other) {
  if (is_sharded(operand) || !is_sharded(other) || operand.dim() > 0) return operand;
  return distribute(operand, Layout::replicated(spec_of(other).layout.mesh()));
}

/// No exponential of it overflows.
Tensor log_of_sigmoid(const Tensor& x) { return at::clamp_max(x, 0) - at::log1p(at::exp(-at::abs(x))); }

void check_fits(const char* op, const Tensor& operand, const Tensor& self) {
  if (!at::is_expandable_to(operand.sizes(), self.sizes()))
    fail<BadInput>("{}: an operand of sizes {} for an input of sizes {}", op, c10::str(operand.sizes()),
                   c10::str(self.sizes()));
}

}  // namespace

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        const std::optional<Tensor>& weight, const std::optional<Tensor>& pos_weight,
                                        int64_t reduction) {
  const auto self = beside(logits, targets), target = beside(targets, logits);
  auto of_ones = log_of_sigmoid(self);
  if (pos_weight && pos_weight->defined()) of_ones = of_ones * ((beside(*pos_weight, self) - 1) * target + 1);
  auto losses = (1 - target) * self - of_ones;
  if (weight && weight->defined()) losses = losses * *weight;
  return reduced(losses, reduction);
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& signs, int64_t reduction) {
  const auto self = beside(input, signs), target = beside(signs, input);
  check_fits("soft_margin_loss", target, self);
  return reduced(at::log1p(at::exp(-self * target)), reduction);
}

Tensor soft_margin_loss_backward(const Tensor& gradient, const Tensor& input, const Tensor& signs, int64_t reduction) {
  const auto self = beside(input, signs), target = beside(signs, input);
  check_fits("soft_margin_loss_backward", target, self);
  const double places = reduction == at::Reduction::Mean ? static_cast<double>(self.numel()) : 1;
  const auto power = at::exp(-self * target);
  return -target * power / (power + 1) / places * gradient;
}

}  // namespace lockstep::composed

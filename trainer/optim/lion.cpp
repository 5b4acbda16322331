#include "trainer/optim/lion.h"

#include <ATen/Functions.h>

#include "trainer/job/job.h"

namespace lockstep::trainer {
namespace {

class Lion final : public Optimizer {
 public:
  explicit Lion(const OptimizerSection& settings) : settings_(settings) {}

  std::vector<SlotKind> slots(const ParameterState&) const override { return {{"momentum"}}; }

  std::vector<StepScalar> scalars(int64_t, double learning_rate, double gradient_scale) const override {
    return {{"learning_rate", learning_rate}, {"gradient_scale", gradient_scale}};
  }

  void update(const ParameterState& parameter, const at::Tensor& gradient,
              std::span<const StepScalar> scalars) const override {
    const double rate = rate_of(parameter, scalars), decay = weight_decay_of(settings_, parameter);
    auto value = parameter.value;
    const auto& momentum = parameter.slot("momentum");
    const auto scaled = at::mul(gradient, value_of(scalars, "gradient_scale"));
    const auto direction = at::sign(at::mul(momentum, settings_.beta1).add_(scaled, 1 - settings_.beta1));
    if (decay > 0) value.mul_(1 - rate * decay);
    value.add_(direction, -rate);
    momentum.mul_(settings_.beta2).add_(scaled, 1 - settings_.beta2);
  }

 private:
  OptimizerSection settings_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lion(const Job& job) { return std::make_unique<Lion>(job.optimizer); }

}  // namespace lockstep::trainer

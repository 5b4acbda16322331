#include "trainer/optim/sgd.h"

#include <ATen/Functions.h>

#include "trainer/job/job.h"

namespace lockstep::trainer {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerSection& settings) : settings_(settings), momentum_(settings.momentum.value_or(0)) {}

  std::vector<SlotKind> slots(const ParameterState&) const override {
    return momentum_ > 0 ? std::vector<SlotKind>{{"momentum"}} : std::vector<SlotKind>{};
  }

  std::vector<StepScalar> scalars(int64_t, double learning_rate, double gradient_scale) const override {
    return {{"learning_rate", learning_rate}, {"gradient_scale", gradient_scale}};
  }

  void update(const ParameterState& parameter, const at::Tensor& gradient,
              std::span<const StepScalar> scalars) const override {
    const double rate = rate_of(parameter, scalars);
    auto value = parameter.value;
    auto change = at::mul(gradient, value_of(scalars, "gradient_scale"));
    if (const double decay = weight_decay_of(settings_, parameter); decay > 0) change.add_(value, decay);
    if (momentum_ > 0) {
      const auto velocity = at::Tensor(parameter.slot("momentum")).mul_(momentum_).add_(change);
      change = settings_.nesterov ? change.add_(velocity, momentum_) : velocity;
    }
    value.add_(change, -rate);
  }

 private:
  OptimizerSection settings_;
  double momentum_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const Job& job) { return std::make_unique<Sgd>(job.optimizer); }

}  // namespace lockstep::trainer

#include "trainer/optim/adamw.h"

#include <ATen/Functions.h>

#include "runtime/own_ops/mesh_ops.h"
#include "trainer/job/job.h"

namespace lockstep::trainer {
namespace {

class Adamw final : public Optimizer {
 public:
  Adamw(const OptimizerSection& settings, bool decoupled) : settings_(settings), decoupled_(decoupled) {}

  std::vector<SlotKind> slots(const ParameterState&) const override {
    return {{.name = "mean", .may_be_offloaded = true}, {.name = "square", .may_be_offloaded = true}};
  }

  std::vector<StepScalar> scalars(int64_t step, double learning_rate, double gradient_scale) const override {
    return {{"learning_rate", learning_rate},
            {"bias_correction1", bias_correction(settings_.beta1, step)},
            {"bias_correction2", bias_correction(settings_.beta2, step)},
            {"gradient_scale", gradient_scale}};
  }

  void update(const ParameterState& parameter, const at::Tensor& gradient,
              std::span<const StepScalar> scalars) const override {
    const double decay = weight_decay_of(settings_, parameter), scale = value_of(scalars, "gradient_scale");
    if (decoupled_ || decay <= 0) return step(parameter, gradient, decay, scale, scalars);
    step(parameter, at::mul(gradient, scale).add_(parameter.value, decay), 0, 1, scalars);
  }

 private:
  void step(const ParameterState& parameter, const at::Tensor& gradient, double decay, double scale,
            std::span<const StepScalar> scalars) const {
    mesh_ops::adamw(parameter.value, gradient, parameter.slot("mean"), parameter.slot("square"),
                    {rate_of(parameter, scalars), settings_.beta1, settings_.beta2, settings_.eps, decay,
                     value_of(scalars, "bias_correction1"), value_of(scalars, "bias_correction2"), scale});
  }

  OptimizerSection settings_;
  bool decoupled_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const Job& job) { return std::make_unique<Adamw>(job.optimizer, true); }
std::unique_ptr<Optimizer> make_adam(const Job& job) { return std::make_unique<Adamw>(job.optimizer, false); }

}  // namespace lockstep::trainer

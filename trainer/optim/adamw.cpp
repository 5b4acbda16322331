#include "trainer/optim/adamw.h"

#include "runtime/own_ops/mesh_ops.h"
#include "trainer/job/job.h"

namespace lockstep::trainer {
namespace {

double bias_correction(double beta, int64_t step) {
  double power = 1;
  for (int64_t i = 0; i < step; ++i) power *= beta;
  return 1 - power;
}

class Adamw final : public Optimizer {
 public:
  explicit Adamw(const OptimizerSection& settings) : settings_(settings) {}

  std::vector<SlotKind> slots() const override { return {{"mean"}, {"square"}}; }

  std::vector<StepScalar> scalars(int64_t step, double learning_rate, double gradient_scale) const override {
    return {{"learning_rate", learning_rate},
            {"bias_correction1", bias_correction(settings_.beta1, step)},
            {"bias_correction2", bias_correction(settings_.beta2, step)},
            {"gradient_scale", gradient_scale}};
  }

  void update(const ParameterState& parameter, const at::Tensor& gradient,
              std::span<const StepScalar> scalars) const override {
    mesh_ops::adamw(parameter.value, gradient, parameter.slot("mean"), parameter.slot("square"),
                    {value_of(scalars, "learning_rate"), settings_.beta1, settings_.beta2, settings_.eps,
                     weight_decay_of(settings_, parameter), value_of(scalars, "bias_correction1"),
                     value_of(scalars, "bias_correction2"), value_of(scalars, "gradient_scale")});
  }

 private:
  OptimizerSection settings_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const Job& job) { return std::make_unique<Adamw>(job.optimizer); }

}  // namespace lockstep::trainer

#include "trainer/optim/weight_average.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kAverage = "average";

class WithAverage final : public Optimizer {
 public:
  WithAverage(std::unique_ptr<Optimizer> optimizer, double decay) : optimizer_(std::move(optimizer)), decay_(decay) {}

  std::vector<SlotKind> slots(const ParameterState& parameter) const override {
    auto kinds = optimizer_->slots(parameter);
    kinds.push_back({.name = kAverage, .follows_value = true});
    return kinds;
  }

  std::vector<StepScalar> scalars(int64_t step, double learning_rate, double gradient_scale) const override {
    return optimizer_->scalars(step, learning_rate, gradient_scale);
  }

  at::Tensor measure(const ParameterState& parameter, const at::Tensor& gradient,
                     std::span<const StepScalar> scalars) const override {
    return optimizer_->measure(parameter, gradient, scalars);
  }

  void update(const ParameterState& parameter, const at::Tensor& gradient,
              std::span<const StepScalar> scalars) const override {
    optimizer_->update(parameter, gradient, scalars);
    at::Tensor(parameter.slot(kAverage)).mul_(decay_).add_(parameter.value, 1 - decay_);
  }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  double decay_;
};

}  // namespace

std::unique_ptr<Optimizer> with_average(std::unique_ptr<Optimizer> optimizer, double decay) {
  return std::make_unique<WithAverage>(std::move(optimizer), decay);
}

const at::Tensor& averaged_value(const ParameterState& parameter) {
  for (const auto& slot : parameter.slots)
    if (slot.name == kAverage) return slot.tensor;
  return parameter.value;
}

}  // namespace lockstep::trainer

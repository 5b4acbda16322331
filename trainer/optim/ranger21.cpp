#include "trainer/optim/ranger21.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "trainer/job/job.h"
#include "trainer/optim/gradient_transforms.h"

namespace lockstep::trainer {
namespace {

constexpr double kNegative = 0.9, kSoftplus = 50, kSlowShare = 0.5;
constexpr int64_t kLookaheadSteps = 5;

class Ranger21 final : public Optimizer {
 public:
  explicit Ranger21(const Job& job) : settings_(job.optimizer), has_(job.ranger21) {}

  std::vector<SlotKind> slots(const ParameterState&) const override {
    std::vector<SlotKind> kinds{{"mean"}, {"square"}};
    if (has_.positive_negative_momentum) kinds.insert(kinds.end(), {{"previous_mean"}, {"largest_square"}});
    if (has_.lookahead) kinds.push_back({.name = "slow", .follows_value = true});
    return kinds;
  }

  std::vector<StepScalar> scalars(int64_t step, double learning_rate, double gradient_scale) const override {
    const bool looks_ahead = has_.lookahead && step % kLookaheadSteps == 0;
    return {{"learning_rate", learning_rate},
            {"bias_correction1", bias_correction(settings_.beta1, step)},
            {"bias_correction2", bias_correction(settings_.beta2, step)},
            {"gradient_scale", gradient_scale},
            {"lookahead", looks_ahead ? 1.0 : 0.0}};
  }

  at::Tensor measure(const ParameterState& parameter, const at::Tensor& gradient,
                     std::span<const StepScalar> scalars) const override {
    take(parameter, transformed(at::mul(gradient, value_of(scalars, "gradient_scale")), parameter.value));
    return has_.stable_weight_decay ? at::sqrt(second(parameter)) : at::Tensor();
  }

  void update(const ParameterState& parameter, const at::Tensor&, std::span<const StepScalar> scalars) const override {
    auto value = parameter.value;
    const double rate = rate_of(parameter, scalars), decay = weight_decay_of(settings_, parameter);
    auto change = at::mul(direction(parameter, scalars), rate);
    if (decay > 0) change.add_(shrinking(value), rate * decay / decay_divisor(scalars));
    value.sub_(change);
    if (value_of(scalars, "lookahead") > 0)
      value.copy_(at::Tensor(parameter.slot("slow")).mul_(kSlowShare).add_(value, 1 - kSlowShare));
  }

 private:
  at::Tensor transformed(at::Tensor gradient, const at::Tensor& value) const {
    if (has_.gradient_clipping) gradient = clipped_by_units(gradient, value);
    if (has_.gradient_centralisation) gradient = centralised(gradient);
    if (has_.gradient_normalisation) gradient = normalised(gradient);
    return gradient;
  }

  /// Into the moments.
  void take(const ParameterState& parameter, const at::Tensor& gradient) const {
    const double share = settings_.beta1 * settings_.beta1;
    const auto& mean = parameter.slot("mean");
    const auto& square = parameter.slot("square");
    if (has_.positive_negative_momentum) {
      const auto& previous = parameter.slot("previous_mean");
      const auto next = at::mul(previous, share).add_(gradient, 1 - share);
      previous.copy_(mean);
      mean.copy_(next);
    } else {
      mean.mul_(settings_.beta1).add_(gradient, 1 - settings_.beta1);
    }
    square.mul_(settings_.beta2).add_(at::mul(gradient, gradient), 1 - settings_.beta2);
    if (!has_.positive_negative_momentum) return;
    const auto& largest = parameter.slot("largest_square");
    largest.copy_(at::maximum(largest, square));
  }

  const at::Tensor& second(const ParameterState& parameter) const {
    return parameter.slot(has_.positive_negative_momentum ? "largest_square" : "square");
  }

  at::Tensor direction(const ParameterState& parameter, std::span<const StepScalar> scalars) const {
    auto first = parameter.slot("mean");
    double divisor = value_of(scalars, "bias_correction1");
    if (has_.positive_negative_momentum) {
      first = at::mul(first, 1 + kNegative).sub_(parameter.slot("previous_mean"), kNegative);
      divisor *= std::sqrt((1 + kNegative) * (1 + kNegative) + kNegative * kNegative);
    }
    auto root = at::add(at::sqrt(at::div(second(parameter), value_of(scalars, "bias_correction2"))), settings_.eps);
    if (has_.softplus) root = at::softplus(root, kSoftplus);
    return at::div(at::div(first, divisor), root);
  }

  /// What weight decay takes a share of.
  at::Tensor shrinking(const at::Tensor& value) const {
    if (!has_.norm_loss) return value;
    return at::sub(value, at::div(value, at::add(unit_norms(value), settings_.eps)));
  }

  double decay_divisor(std::span<const StepScalar> scalars) const {
    if (!has_.stable_weight_decay) return 1;
    return value_of(scalars, kMeasuredRoot) / std::sqrt(value_of(scalars, "bias_correction2")) + settings_.eps;
  }

  OptimizerSection settings_;
  Ranger21Section has_;
};

}  // namespace

std::unique_ptr<Optimizer> make_ranger21(const Job& job) { return std::make_unique<Ranger21>(job); }

}  // namespace lockstep::trainer

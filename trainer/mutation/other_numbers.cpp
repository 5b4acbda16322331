#include "trainer/mutation/other_numbers.h"

#include <cstring>

namespace lockstep::trainer {
namespace {

class OtherNumbers final : public Optimizer {
 public:
  OtherNumbers(std::unique_ptr<Optimizer> right, Mutant mutant, std::function<bool(int64_t)> is_active,
               int64_t& changes)
      : right_(std::move(right)), mutant_(std::move(mutant)), is_active_(std::move(is_active)), changes_(changes) {}

  std::vector<SlotKind> slots(const ParameterState& parameter) const override { return right_->slots(parameter); }
  std::vector<StepScalar> scalars(int64_t step, double rate, double scale) const override {
    auto numbers = right_->scalars(step, rate, scale);
    for (auto& [name, value] : numbers)
      if (name == mutant_.site.tensor) value = changed(step, value);
    return numbers;
  }
  at::Tensor measure(const ParameterState& parameter, const at::Tensor& gradient,
                     std::span<const StepScalar> scalars) const override {
    return right_->measure(parameter, gradient, scalars);
  }
  void update(const ParameterState& parameter, const at::Tensor& gradient,
              std::span<const StepScalar> scalars) const override {
    right_->update(parameter, gradient, scalars);
  }

 private:
  double changed(int64_t step, double value) const {
    const double other = other_number(mutant_, step, value, given_);
    if (!is_active_(step)) return value;
    changes_ += std::memcmp(&other, &value, sizeof value) != 0;
    return other;
  }

  std::unique_ptr<Optimizer> right_;
  Mutant mutant_;
  std::function<bool(int64_t)> is_active_;
  int64_t& changes_;
  mutable std::map<int64_t, double> given_;
};

}  // namespace

double other_number(const Mutant& mutant, int64_t step, double value, std::map<int64_t, double>& given) {
  given[step] = value;
  if (mutant.change == Change::kOld) return given[step - 1];
  if (mutant.change == Change::kPlus) return value + mutant.amount;
  if (mutant.change == Change::kZero) return 0;
  return value * mutant.amount;
}

std::unique_ptr<Optimizer> with_other_number(std::unique_ptr<Optimizer> right, const Mutant& mutant,
                                             std::function<bool(int64_t step)> is_active, int64_t& changes) {
  return std::make_unique<OtherNumbers>(std::move(right), mutant, std::move(is_active), changes);
}

}  // namespace lockstep::trainer

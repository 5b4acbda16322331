#include "trainer/optim/muon.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "trainer/job/job.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/newton_schulz.h"
#include "trainer/optim/on_every_rank.h"

namespace lockstep::trainer {
namespace {

constexpr double kMomentum = 0.95;

/// As long as an update of AdamW's, whatever the matrix's sizes.
at::Tensor direction_of(const at::Tensor& matrix) {
  const double rows = static_cast<double>(matrix.size(0)), columns = static_cast<double>(matrix.size(1));
  return at::mul(orthogonalised(matrix), std::sqrt(std::max(1.0, rows / columns)));
}

at::Tensor part_of(const at::Tensor& matrix, const std::vector<models::PartRows>& rows) {
  std::vector<at::Tensor> runs;
  for (const auto& run : rows) runs.push_back(matrix.narrow(0, run.row, run.count));
  return at::cat(runs);
}

/// Part by part, put together again in the order of the rows.
at::Tensor direction_of(const at::Tensor& matrix, const models::Division& division) {
  if (division.parts().size() == 1) return direction_of(matrix);
  std::vector<std::pair<int64_t, at::Tensor>> runs;
  for (size_t part = 0; part < division.parts().size(); ++part) {
    const auto rows = division.rows_of(part, 0, matrix.size(0));
    const auto direction = direction_of(part_of(matrix, rows));
    for (const auto& run : rows) runs.emplace_back(run.row, direction.narrow(0, run.part_row, run.count));
  }
  std::sort(runs.begin(), runs.end(), [](const auto& left, const auto& right) { return left.first < right.first; });
  std::vector<at::Tensor> in_order;
  for (const auto& run : runs) in_order.push_back(run.second);
  return at::cat(in_order);
}

class Muon final : public Optimizer {
 public:
  explicit Muon(const Job& job)
      : settings_(job.optimizer), momentum_(settings_.momentum.value_or(kMomentum)), adamw_(make_adamw(job)) {}

  std::vector<SlotKind> slots(const ParameterState& parameter) const override {
    return parameter.settings.muon ? std::vector<SlotKind>{{"momentum"}} : adamw_->slots(parameter);
  }

  std::vector<StepScalar> scalars(int64_t step, double learning_rate, double gradient_scale) const override {
    return adamw_->scalars(step, learning_rate, gradient_scale);
  }

  void update(const ParameterState& parameter, const at::Tensor& gradient,
              std::span<const StepScalar> scalars) const override {
    if (!parameter.settings.muon) return adamw_->update(parameter, gradient, scalars);
    const double rate = rate_of(parameter, scalars), decay = weight_decay_of(settings_, parameter);
    auto value = parameter.value;
    const auto scaled = at::mul(gradient, value_of(scalars, "gradient_scale"));
    const auto momentum = at::Tensor(parameter.slot("momentum")).mul_(momentum_).add_(scaled);
    auto direction = direction_of(on_every_rank(at::add(scaled, momentum, momentum_), "muon"), parameter.division);
    if (is_sharded(value)) direction = redistribute_values(direction, layout_of(value), "muon");
    if (decay > 0) value.mul_(1 - rate * decay);
    value.add_(direction, -rate);
  }

 private:
  OptimizerSection settings_;
  double momentum_;
  std::unique_ptr<Optimizer> adamw_;
};

}  // namespace

std::unique_ptr<Optimizer> make_muon(const Job& job) { return std::make_unique<Muon>(job); }

}  // namespace lockstep::trainer

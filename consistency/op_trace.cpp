#include "consistency/op_trace.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include "consistency/comparison.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/planning/plan.h"
#include "runtime/planning/rule.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
std::vector<at::Tensor> computed_results(const OpEvent& event, std::span<const c10::IValue> results) {
  std::vector<at::Tensor> tensors;
  for (auto& result : op_results(event, results))
    if (!result.is_alias && result.tensor.is_floating_point()) tensors.push_back(std::move(result.tensor));
  return tensors;
}

void OpTrace::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  auto& kept = results_[event.id.text()];
  for (const auto& tensor : computed_results(event, results)) kept.push_back(gather(tensor));
}

std::optional<Blame> compare_op(const OpEvent& event, std::span<const c10::IValue> results,
                                const std::vector<at::Tensor>& expected, double tolerance) {
  std::optional<Blame> blame;
  const auto tensors = computed_results(event, results);
  for (size_t i = 0; i < std::min(tensors.size(), expected.size()); ++i) {
    StepRecord mine, theirs;
    mine.parameters = {{event.id.op, gather(tensors[i])}};  // all of them: others may not have found the first
    theirs.parameters = {{event.id.op, expected[i]}};
    if (blame || mine.parameters[0].value.sizes() != theirs.parameters[0].value.sizes()) continue;
    const auto comparison = compare(theirs, mine, tolerance);
    if (comparison.agrees()) continue;
    const auto* rule = event.plan.rule;
    blame = Blame{event.id.text(), event.id.op, rule ? fmt::format("{} \"{}\"", rule->family, rule->dims) : "",
                  layouts_of(event.plan), comparison.beyond[0].text()};
  }
  return blame;
}

void BlameObserver::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  const auto position = position_++;
  const auto expected = reference_.results().find(event.id.text());
  if (expected == reference_.results().end()) return;  // communication that one device does not have
  auto found = compare_op(event, results, expected->second, tolerance_);
  if (blame_ || !found) return;
  blame_ = std::move(found);
  blame_->position = position;
}

std::string Blame::text() const {
  return fmt::format(
      "  op       {}\n  rule     {}\n  layouts  {}\n  worst    {}\n  before   all earlier ops agree: the fault is in "
      "this op, its rule or its communication",
      id, rule, layouts, worst);
}

void NonFiniteObserver::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  bool is_finite = true;
  for (const auto& tensor : computed_results(event, results))
    if (const auto whole = gather(tensor); first_.empty()) is_finite &= whole.isfinite().all().item<bool>();
  if (!first_.empty()) return;
  if (is_finite)
    ++position_;
  else
    first_ = event.id.text();
}

}  // namespace lockstep

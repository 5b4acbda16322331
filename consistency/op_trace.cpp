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
  const auto tensors = computed_results(event, results);
  for (size_t i = 0; i < std::min(tensors.size(), expected.size()); ++i) {
    StepRecord mine, theirs;
    mine.parameters = {{event.id.op, gather(tensors[i])}};
    theirs.parameters = {{event.id.op, expected[i]}};
    if (mine.parameters[0].value.sizes() != theirs.parameters[0].value.sizes()) continue;
    const auto comparison = compare(theirs, mine, tolerance);
    if (comparison.agrees()) continue;
    const auto* rule = event.plan.rule;
    return Blame{event.id.text(), event.id.op, rule ? fmt::format("{} \"{}\"", rule->family, rule->dims) : "",
                 layouts_of(event.plan), comparison.beyond[0].text()};
  }
  return std::nullopt;
}

void BlameObserver::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  if (blame_) return;
  const auto expected = reference_.results().find(event.id.text());
  if (expected == reference_.results().end()) return;  // communication that one device does not have
  blame_ = compare_op(event, results, expected->second, tolerance_);
}

std::string Blame::text() const {
  return fmt::format(
      "  op       {}\n  rule     {}\n  layouts  {}\n  worst    {}\n  before   all earlier ops agree: the fault is in "
      "this op, its rule or its communication",
      id, rule, layouts, worst);
}

void NonFiniteObserver::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  if (!first_.empty()) return;
  for (const auto& tensor : computed_results(event, results))
    if (!gather(tensor).isfinite().all().item<bool>()) first_ = event.id.text();
}

}  // namespace lockstep

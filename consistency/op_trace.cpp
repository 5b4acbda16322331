#include "consistency/op_trace.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <utility>

#include "core/collective_kind.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {

TracedOperand OpTrace::traced(const Operand& operand) const {
  auto whole = whole_value(operand.tensor);
  TracedOperand traced{operand.argument, operand.element, whole.sizes().vec(), {}, {}};
  if (tolerance_ < 0)
    traced.digest = digest_of(whole);
  else
    traced.value = std::move(whole);
  return traced;
}

void OpTrace::before_op(const OpEvent& event) {
  auto& op = ops_[event.id.text()];
  for (const auto& operand : operands_read_by(event)) op.operands.push_back(traced(operand));
  awaited_[event.id.text()] = awaited_operands_of(event.arguments);
  for (const auto& argument : event.arguments) op.numbers.push_back(number_of(argument));
}

void OpTrace::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  auto& op = ops_[event.id.text()];
  for (const auto& operand : arrived(event, std::exchange(awaited_[event.id.text()], {})))
    op.operands.push_back(traced(operand));
  for (const auto& result : readable_results(event, results)) {
    op.results.push_back(whole_value(result.tensor));
    if (!result.is_alias) op.computed.push_back(op.results.back());
  }
}

void OpTrace::after_value(const ValueEvent& event) {
  auto& value = values_[event.id.text()];
  value.number = event.number;
  if (event.spec) value.tensor = whole_of(all_shards(local_shards(*event.spec, event.shards)));
}

namespace {

template <class Value>
const Value* found_in(const std::map<std::string, Value>& all, const std::string& id) {
  const auto found = all.find(id);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace

const TracedOp* OpTrace::find(const std::string& id) const { return found_in(ops_, id); }
const TracedValue* OpTrace::find_value(const std::string& id) const { return found_in(values_, id); }

namespace {

bool are_finite(const Shards& shards) {
  const PlainTensors guard;
  for (const auto& shard : shards)
    if (shard.is_floating_point() && !shard.isfinite().all().item<bool>()) return false;
  return true;
}

}  // namespace

void NonFiniteObserver::note(bool is_finite, const std::string& what) {
  if (!first_.empty()) return;
  if (is_finite)
    ++position_;
  else
    first_ = what;
}

void NonFiniteObserver::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  bool is_finite = true;
  for (const auto& tensor : computed_results(event, results))
    is_finite &= are_finite(sharded(tensor).shards()->local_tensors());
  note(is_finite, event.id.text());
}

void NonFiniteObserver::after_move(const MoveEvent& event) {
  const auto& axis = event.before.layout.mesh().axes()[static_cast<size_t>(event.axis)].name;
  note(are_finite(event.shards_after),
       fmt::format("{} over {} in {}", event.kind ? to_text(*event.kind) : "a local move", axis, event.id.text()));
}

}  // namespace lockstep

#include "consistency/blame_observer.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

std::string operand_name(const OpEvent& event, const Operand& operand) {
  const auto& argument = event.op.schema().arguments()[static_cast<size_t>(operand.argument)];
  return operand.element < 0 ? fmt::format("operand {}", argument.name())
                             : fmt::format("operand {}[{}]", argument.name(), operand.element);
}

const TracedOperand* counterpart(const TracedOp& expected, const Operand& operand) {
  const auto found = std::find_if(expected.operands.begin(), expected.operands.end(), [&](const TracedOperand& traced) {
    return traced.argument == operand.argument && traced.element == operand.element;
  });
  return found == expected.operands.end() ? nullptr : &*found;
}

/// Where only the digest of the right value is known, more cannot be said than which bits it does not have.
Difference other_bits(const at::Tensor& whole) {
  Difference difference;
  difference.wrong_elements = difference.elements = whole.numel();
  difference.sizes = "its bits are not those of one device";
  return difference;
}

/// An operand whose copies differ says whose are odd.
Difference difference_of_operand(const at::Tensor& tensor, const TracedOperand& expected, double tolerance) {
  std::optional<HeldShards> all;
  if (is_sharded(tensor)) all = all_shards(local_shards(tensor));
  const auto whole = all ? whole_of(*all) : whole_value(tensor);
  if (whole.sizes() != c10::IntArrayRef(expected.sizes)) return difference_of_sizes(whole.sizes(), expected.sizes);
  if (tolerance >= 0)
    return all ? difference_of(*all, expected.value, tolerance) : difference_of(whole, expected.value, tolerance);
  if (digest_of(whole) != expected.digest) return other_bits(whole);
  return all ? difference_of(*all, whole, kBits) : Difference{};
}

}  // namespace

void BlameObserver::note(Blame blame) {
  if (blame_) return;
  blame.position = position_;
  blame.before = compared();
  blame_ = std::move(blame);
}

std::string BlameObserver::compared() const {
  const auto all = fmt::format("{} ops with what they took, and {} moves between layouts, agree", ops_, moves_);
  return alone_ == 0
             ? all
             : fmt::format("{}; {} ops have no counterpart on one device (the first: {})", all, alone_, first_alone_);
}

void BlameObserver::before_op(const OpEvent& event) {
  ++position_;
  const auto* expected = reference_.find(event.id.text());
  if (!expected) {  // communication that one device does not have
    if (alone_++ == 0) first_alone_ = event.id.text();
    return;
  }
  compare_operands(event, *expected);
  compare_numbers(event, *expected);
}

void BlameObserver::compare_operands(const OpEvent& event, const TracedOp& expected) {
  for (const auto& operand : operands_of(event.arguments)) {
    const auto* traced = counterpart(expected, operand);
    if (!traced) continue;
    auto difference = difference_of_operand(operand.tensor, *traced, tolerance_);
    if (difference.agrees()) continue;
    difference.kind = operand_name(event, operand), difference.name = event.id.op;
    auto blame = blame_of("operand", event);
    describe(blame, difference);
    note(std::move(blame));
  }
}

void BlameObserver::compare_numbers(const OpEvent& event, const TracedOp& expected) {
  for (size_t a = 0; a < std::min(event.arguments.size(), expected.numbers.size()); ++a) {
    const auto mine = number_of(event.arguments[a]);
    if (same_numbers(mine, expected.numbers[a], tolerance_)) continue;
    auto blame = blame_of("number", event);
    blame.worst = fmt::format("{} = {}, one device: {}", event.op.schema().arguments()[a].name(), c10::str(mine),
                              c10::str(expected.numbers[a]));
    note(std::move(blame));
  }
}

void BlameObserver::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  ++position_;
  const auto* expected = reference_.find(event.id.text());
  if (!expected) return;
  std::vector<at::Tensor> tensors;
  for (auto& result : readable_results(event, results)) tensors.push_back(std::move(result.tensor));
  if (auto found = compare_op(event, tensors, expected->results, tolerance_)) note(std::move(*found));
  ++ops_;
}

/// The whole is the same before and after, and all copies are. Copies that differ before it are not the move's doing.
void BlameObserver::after_move(const MoveEvent& event) {
  ++position_;
  const auto before = all_shards(local_shards(event.before, event.shards_before));
  const auto after = all_shards(local_shards(event.after, event.shards_after));
  const auto whole = whole_of(before);
  auto difference = difference_of(before, whole, tolerance_);
  const bool is_given = !difference.agrees();
  if (!is_given) difference = difference_of(after, whole, tolerance_);
  ++moves_;
  if (difference.agrees()) return;
  --moves_;
  difference.kind = "value", difference.name = event.id.op;
  auto blame = blame_of(event, difference);
  if (is_given) blame.kind = "operand", blame.collective.clear();
  note(std::move(blame));
}

}  // namespace lockstep

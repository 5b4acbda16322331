#include "consistency/blame_observer.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "consistency/place_on_mesh.h"
#include "runtime/planning/make_plan.h"
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

/// "; 3 ops have ...".
std::string count_text(int64_t count, const char* what, const std::string& first) {
  if (count == 0) return "";
  return fmt::format("; {} {}{}", count, what, first.empty() ? "" : fmt::format(" (the first: {})", first));
}

template <class Value>
std::vector<std::string> unseen(const std::map<std::string, Value>& all, const std::set<std::string>& seen) {
  std::vector<std::string> ids;
  for (const auto& [id, value] : all)
    if (!seen.contains(id)) ids.push_back(id);
  return ids;
}

}  // namespace

void BlameObserver::note(Blame blame) {
  if (blame_) return;
  blame.position = position_;
  blame.before = compared();
  blame_ = std::move(blame);
}

void BlameObserver::note_alone(const std::string& id) {
  if (alone_++ == 0) first_alone_ = id;
}

std::string BlameObserver::compared() const {
  const auto values =
      values_ == 0 ? "" : fmt::format(", and {} {} between ops", values_, values_ == 1 ? "value" : "values");
  return fmt::format("{} ops with what they took, {}{} moves between layouts{}, agree", ops_,
                     values_ == 0 ? "and " : "", moves_, values) +
         count_text(alone_, "without a counterpart on one device are not compared", first_alone_) +
         count_text(pending_, "operands or results could not be read, and are not compared", "");
}

bool BlameObserver::compared_all() const { return alone_ == 0 && pending_ == 0 && missing_text().empty(); }

std::string BlameObserver::missing_text() const {
  auto ids = unseen(reference_.ops(), seen_);
  for (auto& id : unseen(reference_.values(), seen_)) ids.push_back(std::move(id));
  return count_text(static_cast<int64_t>(ids.size()), "of one device did not come", ids.empty() ? "" : ids[0]);
}

Blame BlameObserver::blame_of_none() const {
  Blame blame{.kind = "step", .before = compared() + missing_text()};
  blame.id = compared_all() ? "none: every op and every move agrees with one device's"
                            : "none of those that were compared: ops and moves agree with one device's";
  return blame;
}

void BlameObserver::before_op(const OpEvent& event) {
  ++position_;
  old_.begin(event);
  const auto id = event.id.text();
  seen_.insert(id);
  const auto* expected = reference_.find(id);
  if (!expected) return note_alone(id);  // communication that one device does not have
  awaited_[id] = awaited_operands_of(event.arguments);
  for (const auto& operand : operands_read_by(event)) compare_operand(event, operand, *expected);
  compare_numbers(event, *expected);
}

void BlameObserver::compare_operand(const OpEvent& event, const Operand& operand, const TracedOp& expected) {
  const auto* traced = counterpart(expected, operand);
  if (!traced) return void(++pending_);
  auto difference = difference_of_operand(operand.tensor, *traced, tolerance_);
  if (difference.agrees()) return;
  difference.kind = operand_name(event, operand), difference.name = event.id.op;
  auto blame = blame_of("operand", event);
  describe(blame, difference);
  if (is_sharded(operand.tensor)) {
    const auto& layout = layout_of(operand.tensor);
    place_on_mesh(blame, layout.mesh(), {partial_axes(layout), cut_axes(layout)});
  }
  note(std::move(blame));
}

void BlameObserver::compare_numbers(const OpEvent& event, const TracedOp& expected) {
  for (size_t a = 0; a < std::min(event.arguments.size(), expected.numbers.size()); ++a) {
    const auto mine = number_of(event.arguments[a]);
    if (same_numbers(mine, expected.numbers[a], tolerance_)) continue;
    auto blame = blame_of("number", event);
    blame.worst = fmt::format("{} = {}, one device: {}", event.op.schema().arguments()[a].name(), c10::str(mine),
                              c10::str(expected.numbers[a]));
    if (const auto* mesh = mesh_of(event.plan)) blame.ranks = mesh->local_ranks();
    note(std::move(blame));
  }
}

void BlameObserver::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  ++position_;
  const auto* expected = reference_.find(event.id.text());
  std::vector<at::Tensor> tensors;
  for (auto& result : readable_results(event, results)) tensors.push_back(std::move(result.tensor));
  if (!expected) return;
  const auto awaited = std::exchange(awaited_[event.id.text()], {});
  const auto arrived_now = arrived(event, awaited);
  pending_ += static_cast<int64_t>(awaited.size() - arrived_now.size());
  for (const auto& operand : arrived_now) compare_operand(event, operand, *expected);
  const auto unread = static_cast<int64_t>(expected->results.size()) - static_cast<int64_t>(tensors.size());
  pending_ += std::abs(unread);
  if (unread != 0) return;
  auto found = compare_op(event, tensors, expected->results, tolerance_,
                          [&](size_t result, HeldShards& held) { old_.look(event, result, held); });
  if (found) note(std::move(*found));
  ++ops_;
}

/// The whole is the same before and after, and all copies are. Copies that differ before it are not the move's doing.
void BlameObserver::after_move(const MoveEvent& event) {
  ++position_;
  const auto before = all_shards(local_shards(event.before, event.shards_before));
  auto after = all_shards(local_shards(event.after, event.shards_after));
  old_.look(event, after);
  const auto whole = whole_of(before);
  auto difference = difference_of(before, whole, tolerance_);
  const bool is_given = !difference.agrees();
  if (!is_given) difference = difference_of(after, whole, tolerance_);
  ++moves_;
  if (difference.agrees()) return;
  --moves_;
  difference.kind = "value", difference.name = event.id.op;
  auto blame = blame_of(event, difference);
  if (is_given)
    blame.kind = "operand", blame.collective.clear();
  else if (!blame_)
    moved_.emplace(event);
  note(std::move(blame));
}

void BlameObserver::compare_tensor(const ValueEvent& event, const at::Tensor& expected) {
  const auto all = all_shards(local_shards(*event.spec, event.shards));
  auto difference = difference_of(all, expected, tolerance_);
  if (difference.agrees()) return void(++values_);
  difference.kind = "value", difference.name = event.id.op;
  auto blame = blame_of("joined", event.id);
  blame.layouts = event.spec->text();
  describe(blame, difference);
  place_on_mesh(blame, event.spec->layout.mesh(), {partial_axes(event.spec->layout), cut_axes(event.spec->layout)});
  note(std::move(blame));
}

void BlameObserver::after_value(const ValueEvent& event) {
  ++position_;
  const auto id = event.id.text();
  seen_.insert(id);
  const auto* expected = reference_.find_value(id);
  if (!expected || expected->tensor.defined() != (event.spec != nullptr)) return note_alone(id);
  if (event.spec) return compare_tensor(event, expected->tensor);
  if (same_numbers(event.number, expected->number, tolerance_)) return void(++values_);
  auto blame = blame_of("number", event.id);
  blame.worst = fmt::format("{} = {:.10g}, one device: {:.10g}", event.id.op, event.number, expected->number);
  blame.ranks = event.mesh.local_ranks();
  note(std::move(blame));
}

}  // namespace lockstep

#include "consistency/op_check.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "consistency/bounds/error_bounds.h"
#include "consistency/traced_op.h"
#include "core/digest/digest.h"
#include "core/error.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rule.h"
#include "runtime/tensor/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

double unit_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kBFloat16:
      return 0x1p-8;
    case c10::kHalf:
      return 0x1p-11;
    case c10::kDouble:
      return 0x1p-53;
    default:
      return 0x1p-24;
  }
}

/// 16-bit ops compute in fp32. What is compared with is computed in double, so that a double's is rounded as well.
double arithmetic_unit(c10::ScalarType dtype) { return dtype == c10::kDouble ? 0x1p-52 : 0x1p-24; }

/// With what rounds to 16 bits: once where it is whole, and each part of an unfinished sum. Near the largest number,
/// where what leads to it may be too large, nothing is said.
at::Tensor with_rounding_to(c10::ScalarType dtype, at::Tensor allowed, const at::Tensor& exact,
                            const HeldShards& result) {
  const PlainTensors guard;
  const auto largest = dtype == c10::kDouble ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const auto parts = result.spec->any_partial ? whole_of(magnitudes(result)) : exact.abs();
  if (dtype == c10::kBFloat16 || dtype == c10::kHalf)
    allowed = allowed + 1.01 * unit_of(dtype) * (exact.abs() + 2 * allowed + parts);
  const auto is_beyond = at::logical_not(parts + exact.abs() + allowed <= (dtype == c10::kHalf ? 65504.0 : largest) / 4);
  return at::where(is_beyond, at::full({}, std::numeric_limits<double>::infinity(), allowed.options()), allowed);
}

/// What is known of factories is what is known of their rows, if they have one.
ErrorBound bound_of(const OpEvent& event) {
  if (!event.plan.rule) return {};
  const auto* bound = error_bound(*event.plan.rule);
  LOCKSTEP_CHECK(bound, "consistency/bounds knows no bound of {}", event.plan.rule->op);
  return *bound;
}

/// What an op made of an operand's sum: the tensor keeps it.
at::Tensor sum_that_was_taken(const at::Tensor& operand, const TensorSpec* wanted) {
  auto& self = sharded(operand);
  const auto kept = self.spec().any_partial ? self.shards()->reduced_to(wanted) : self.shards();
  LOCKSTEP_CHECK(kept, "{} has not kept its sum", self.spec().text());
  return whole_of(all_shards(local_shards(*wanted, kept->local_tensors())));
}

/// Over how many ranks sums are added up on the way to the op that goes on with them unfinished.
double added_on_the_way(const Plan& plan, size_t slot) {
  double ranks = 0;
  const auto &given = plan.given[slot]->layout, &wanted = plan.wanted[slot]->layout;
  for (int axis = 0; axis < given.axis_count(); ++axis)
    if (given[axis].is_partial() && !wanted[axis].is_partial()) ranks += static_cast<double>(given.mesh().axis_size(axis));
  return ranks;
}

/// Of rows that round nothing: the parts of a sum are finished by others than one device's op.
std::vector<at::Tensor> of_finished_sums(const ExactCall& call, const std::vector<HeldShards>& results) {
  std::vector<at::Tensor> allowed;
  for (const auto& result : results) allowed.push_back(call.rounded(1, whole_of(magnitudes(result))));
  return allowed;
}

bool is_summed(const MoveEvent& event) {
  const auto& placement = event.before.layout[event.axis];
  return placement.is_partial() &&
         (placement.reduction == Reduction::kSum || placement.reduction == Reduction::kAvg);
}

}  // namespace

OpCheck::OpCheck(const World& run, int64_t sample)
    : bits_(run.canonical()), sample_(sample), declared_(run, run.domain()), double_(run, Domain::kFloat64) {}

/// A function of the id: the same on all ranks, and on all meshes.
bool OpCheck::is_chosen(const std::string& id) const {
  return sample_ == 1 || digest(std::as_bytes(std::span(id))).high % static_cast<uint64_t>(sample_) == 0;
}

/// An op that goes on with a sum's parts is compared by their sum in double. Where it adds them up first, native
/// numerics may do that in any order: what it got is what counts.
OpCheck::Operand OpCheck::operand_of(const at::Tensor& tensor, const TensorSpec& wanted) const {
  const bool is_sum = !bits_ && spec_of(tensor).any_partial;
  if (is_sum && !wanted.any_partial) return {};
  const auto all = all_shards(local_shards(tensor));
  Operand operand{whole_of(all), {}, {}};
  if (is_sum) {
    operand.exact = whole_of(in_doubles(all));
    operand.magnitude = whole_of(magnitudes(all));
  }
  return operand;
}

void OpCheck::before_op(const OpEvent& event) {
  ++counts_.ops;
  auto id = event.id.text();
  if (!is_chosen(id)) return;
  if (listener_) listener_(event);
  Begun begun{std::move(id), {}, 0};
  for (size_t slot = 0; const auto& operand : sharded_operands(event.arguments)) {
    while (!event.plan.given.at(slot)) ++slot;  // of a plain tensor
    const auto& wanted = *event.plan.wanted[slot];
    if (wanted.any_partial) begun.added_on_the_way += added_on_the_way(event.plan, slot);
    begun.operands.push_back(operand_of(operand.tensor, wanted));
    ++slot;
  }
  begun_.push_back(std::move(begun));
}

void OpCheck::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  if (begun_.empty() || begun_.back().id != event.id.text()) return;
  const auto begun = std::move(begun_.back());
  begun_.pop_back();
  if (bound_of(event).kind == ErrorBound::Kind::kUnwritten) return;
  compare_with_one_device(event, begun, results);
  ++counts_.compared_ops;
}

void OpCheck::compare_with_one_device(const OpEvent& event, const Begun& begun, std::span<const c10::IValue> results) {
  std::vector<HeldShards> shards;
  const auto given = readable_results(event, results);
  for (const auto& result : given) shards.push_back(all_shards(local_shards(result.tensor)));
  const auto values = values_of(event, begun);
  auto blame = blame_of("op", event);
  std::vector<at::Tensor> expected;
  try {
    expected = declared_.run(event, values);
    const auto all = differences(event, begun, values, expected, shards);
    const auto worst = std::ranges::find_if(all, [](const Difference& difference) { return !difference.agrees(); });
    if (worst == all.end()) return;
    describe(blame, *worst);
  } catch (const c10::Error& error) {
    blame.worst = fmt::format("one device refuses what the mesh took: {}", error.what_without_backtrace());
  } catch (const BadInput& error) {
    blame.worst = fmt::format("one device refuses what the mesh took: {}", error.what());
  }
  if (blame_) return;
  for (size_t r = 0; r < expected.size(); ++r)
    if (!given[r].is_alias) expected_.push_back(expected[r]);
  note(std::move(blame));
}

bool OpCheck::may_round(const OpEvent& event, const Begun& begun) {
  const bool takes_sums = std::ranges::any_of(begun.operands, [](const Operand& one) { return one.exact.defined(); });
  return takes_sums || bound_of(event).allowed;
}

std::vector<Difference> OpCheck::differences(const OpEvent& event, const Begun& begun,
                                             const std::vector<at::Tensor>& values,
                                             const std::vector<at::Tensor>& expected,
                                             const std::vector<HeldShards>& results) {
  LOCKSTEP_CHECK_EQ(expected.size(), results.size(), "results of {}", begun.id);
  std::vector<Difference> all;
  for (size_t r = 0; r < results.size(); ++r) {
    all.push_back(difference_of_result(event, results[r], expected[r], bits_ ? kBits : 0));
    counts_.elements += all.back().elements;
  }
  const bool agree = std::ranges::all_of(all, &Difference::agrees);
  if (!agree && !bits_ && may_round(event, begun)) all = differences_beyond_rounding(event, begun, values, results);
  for (size_t r = 0; r < all.size(); ++r) {
    all[r].kind = all.size() == 1 ? "result" : fmt::format("result {}", r);
    all[r].name = event.id.op;
  }
  return all;
}

std::vector<at::Tensor> OpCheck::values_of(const OpEvent& event, const Begun& begun) const {
  std::vector<at::Tensor> values;
  for (size_t slot = 0; const auto& operand : sharded_operands(event.arguments)) {
    while (!event.plan.given.at(slot)) ++slot;
    const auto& value = begun.operands.at(values.size()).value;
    values.push_back(value.defined() ? value : sum_that_was_taken(operand.tensor, event.plan.wanted[slot]));
    ++slot;
  }
  return values;
}

/// Other bits than one device's may be right, too.
std::vector<Difference> OpCheck::differences_beyond_rounding(const OpEvent& event, const Begun& begun,
                                                             const std::vector<at::Tensor>& values,
                                                             const std::vector<HeldShards>& results) {
  std::vector<at::Tensor> exact;
  const auto allowed = allowed_errors(event, begun, values, results, exact);
  std::vector<Difference> all;
  for (size_t r = 0; r < results.size(); ++r) {
    const auto dtype = results[r].spec->dtype;
    const bool rounds = exact[r].is_floating_point();
    const auto limit = rounds ? with_rounding_to(dtype, allowed.at(r), exact[r], results[r]) : at::Tensor();
    all.push_back(rounds ? difference_within(results[r], exact[r], limit)
                         : difference_of_result(event, results[r], exact[r], kBits));
    all.back().reference_name = "in double";
    counts_.over_bound = std::max(counts_.over_bound, all.back().over_bound);
  }
  return all;
}

std::vector<at::Tensor> OpCheck::allowed_errors(const OpEvent& event, const Begun& begun,
                                                const std::vector<at::Tensor>& values,
                                                const std::vector<HeldShards>& results,
                                                std::vector<at::Tensor>& exact) {
  const PlainTensors guard;
  std::vector<c10::IValue> arguments(event.arguments.begin(), event.arguments.end()), magnitudes = arguments;
  std::vector<at::Tensor> wholes;
  auto dtype = c10::kFloat;
  const auto operands = sharded_operands(event.arguments);
  for (size_t o = 0; o < operands.size(); ++o) {
    const bool is_float = values[o].is_floating_point();
    if (is_float && (o == 0 || unit_of(values[o].scalar_type()) > unit_of(dtype))) dtype = values[o].scalar_type();
    const auto& [value, sum, magnitude] = begun.operands[o];
    wholes.push_back(sum.defined() ? sum : is_float ? values[o].to(c10::kDouble) : values[o]);
    set_slot(arguments, operands[o].slot, wholes.back());
    set_slot(magnitudes, operands[o].slot,
             magnitude.defined() ? magnitude : is_float ? wholes.back().abs() : wholes.back());
  }
  exact = double_.run(event, wholes);
  const bool is_short = dtype == c10::kBFloat16 || dtype == c10::kHalf;
  const ExactCall call{event.op.schema(), arguments, magnitudes, exact, arithmetic_unit(dtype),
                       is_short ? unit_of(dtype) : 0.0, begun.added_on_the_way};
  const auto bound = bound_of(event);
  return bound.allowed ? bound.allowed(call) : of_finished_sums(call, results);
}

void OpCheck::after_move(const MoveEvent& event) {
  ++counts_.moves;
  if (!is_chosen(fmt::format("{} {}", event.id.text(), event.axis))) return;
  const auto before = all_shards(local_shards(event.before, event.shards_before));
  const auto after = all_shards(local_shards(event.after, event.shards_after));
  auto difference = difference_of(after, whole_of(before), bits_ ? kBits : 0);
  if (!difference.agrees() && !bits_ && is_summed(event)) {
    const PlainTensors guard;
    const auto exact = whole_of(in_doubles(before)), magnitude = whole_of(magnitudes(before));
    const auto members = static_cast<double>(event.before.layout.mesh().axis_size(event.axis));
    const auto allowed = rounded(members + 1, arithmetic_unit(event.after.dtype), magnitude);
    difference = difference_within(after, exact, with_rounding_to(event.after.dtype, allowed, exact, after));
    difference.reference_name = "in double";
    counts_.over_bound = std::max(counts_.over_bound, difference.over_bound);
  }
  ++counts_.compared_moves;
  counts_.elements += difference.elements;
  if (difference.agrees()) return;
  difference.kind = "value", difference.name = event.id.op;
  note(blame_of(event, difference));
}

void OpCheck::note(Blame blame) {
  if (blame_) return;
  blame_ = std::move(blame);
  blame_->position = counts_.ops + counts_.moves;
  blame_->before = compared() + ", compared with one device each, agree";
}

std::string OpCheck::compared() const {
  return fmt::format("{} of {} ops and {} of {} moves", counts_.compared_ops, counts_.ops, counts_.compared_moves,
                     counts_.moves);
}

}  // namespace lockstep

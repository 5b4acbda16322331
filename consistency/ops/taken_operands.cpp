#include "consistency/ops/taken_operands.h"

#include <algorithm>

#include "consistency/held_shards.h"
#include "consistency/ops/one_device.h"
#include "core/error.h"
#include "runtime/planning/plan.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

/// The slots of the plan that have sharded tensors: those of sharded_operands().
std::vector<size_t> sharded_slots(const Plan& plan) {
  std::vector<size_t> slots;
  for (size_t slot = 0; slot < plan.given.size(); ++slot)
    if (plan.given[slot]) slots.push_back(slot);
  return slots;
}

double ranks_added_up(const Layout& given, const Layout& wanted) {
  double ranks = 0;
  for (int axis = 0; axis < given.axis_count(); ++axis)
    if (given[axis].is_partial() && !wanted[axis].is_partial())
      ranks += static_cast<double>(given.mesh().axis_size(axis));
  return ranks;
}

/// What an op made of an operand's sum: the tensor keeps it.
at::Tensor sum_that_was_taken(const at::Tensor& operand, const TensorSpec* wanted) {
  auto& self = sharded(operand);
  const auto kept = self.spec().any_partial ? self.shards()->reduced_to(wanted) : self.shards();
  LOCKSTEP_CHECK(kept, "{} has not kept its sum", self.spec().text());
  return whole_of(all_shards(local_shards(*wanted, *kept)));
}

}  // namespace

TakenOperands::TakenOperands(const OpEvent& event, bool is_canonical) {
  const auto operands = sharded_operands(event.arguments);
  const auto slots = sharded_slots(event.plan);
  for (size_t o = 0; o < operands.size(); ++o) {
    const auto &given = *event.plan.given[slots[o]], &wanted = *event.plan.wanted[slots[o]];
    const bool is_sum = !is_canonical && given.any_partial;
    sums_.emplace_back();
    before_.emplace_back();
    if (is_sum && !wanted.any_partial) continue;
    const auto all = all_shards(local_shards(operands[o].tensor));
    before_.back() = whole_of(all);
    if (!is_sum) continue;
    sums_.back() = {whole_of(in_doubles(all)), whole_of(magnitudes(all))};
    added_on_the_way_ += ranks_added_up(given.layout, wanted.layout);
  }
}

std::vector<at::Tensor> TakenOperands::values(const OpEvent& event) const {
  const auto operands = sharded_operands(event.arguments);
  const auto slots = sharded_slots(event.plan);
  auto values = before_;
  for (size_t o = 0; o < values.size(); ++o)
    if (!values[o].defined()) values[o] = sum_that_was_taken(operands[o].tensor, event.plan.wanted[slots[o]]);
  return values;
}

bool TakenOperands::has_sums() const {
  return std::ranges::any_of(sums_, [](const Sum& sum) { return sum.exact.defined(); });
}

}  // namespace lockstep

#include "trainer/verify/step_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "consistency/held_shards.h"
#include "runtime/plain/plain_tensors.h"

namespace lockstep::trainer {

StepRecord record_of(int64_t step, const StepResult& result, const TrainingState& state) {
  StepRecord record{step, result.valid_tokens, result.loss, result.gradient_norm, {}, {}, {}, {}};
  size_t next = 0;
  for (const auto& entry : state) {
    if (entry.trainable && !result.gradients.empty())
      record.gradients.push_back({entry.name, result.gradients.at(next++)});
    record.parameters.push_back({entry.name, entry.value});
    for (const auto& slot : entry.slots)
      (slot.follows_value ? record.parameters : record.optimizer)
          .push_back({fmt::format("{} of {}", slot.name, entry.name), slot.tensor});
  }
  for (const auto& [name, value] : result.scalars) record.scalars.push_back({name, value});
  for (size_t m = 0; m < result.token_losses.size(); ++m)
    record.token_losses.push_back({fmt::format("microbatch {}", m), result.token_losses[m]});
  return record;
}

namespace {

/// Of a parameter, or of the optimizer's state.
at::Tensor tensor_named(const StepRecord& record, const std::string& name) {
  for (const auto* all : {&record.parameters, &record.optimizer})
    for (const auto& named : *all)
      if (named.name == name) return named.value;
  return {};
}

}  // namespace

bool is_unchanged(const Difference& difference, const TrainingState& start, const TrainingState& state) {
  if (difference.kind != "parameter" && difference.kind != "optimizer state") return false;
  const auto before = tensor_named(record_of(0, {}, start), difference.name),
             after = tensor_named(record_of(0, {}, state), difference.name);
  if (!before.defined() || !after.defined()) return false;
  const PlainTensors guard;
  const auto whole = whole_of(local_shards(before));
  const auto held = local_shards(after);
  for (size_t r = 0; r < held.ranks.size(); ++r) {
    const bool is_wrong = difference.ranks.empty() || std::ranges::count(difference.ranks, held.ranks[r]) > 0;
    const auto part = part_of(*held.spec, whole, held.ranks[r]);
    if (is_wrong && !same_bits(part.to(held.shards[r].scalar_type()), held.shards[r])) return false;
  }
  return true;
}

}  // namespace lockstep::trainer

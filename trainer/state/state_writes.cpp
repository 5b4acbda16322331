#include "trainer/state/state_writes.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/state_ops.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/state/shard_digest.h"

namespace lockstep::trainer {
void StateWrites::begin(const TrainingState& state) {
  marks_.clear(), parts_.clear(), change_.clear();
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors())
      marks_[tensor.unsafeGetTensorImpl()] = {prefix + entry.name, tensor, digests_of_shards(tensor)};
}

StateWrites::Mark* StateWrites::find(const c10::IValue& argument) {
  if (!argument.isTensor()) return nullptr;
  const auto found = marks_.find(argument.toTensor().unsafeGetTensorImpl());
  return found == marks_.end() ? nullptr : &found->second;
}

void StateWrites::compare(const Mark& mark) {
  if (!change_.empty()) return;
  const auto now = digests_of_shards(mark.tensor);
  LOCKSTEP_CHECK_EQ(now.size(), mark.shards.size(), "shards of {}", mark.name);
  const auto& ranks = layout_of(mark.tensor).mesh().local_ranks();
  for (size_t i = 0; i < now.size() && change_.empty(); ++i)
    if (now[i] != mark.shards[i]) change_ = fmt::format("{} on rank {}", mark.name, ranks[i]);
}

void StateWrites::before_op(const OpEvent& event) {
  if (!writes_state(event.id.phase, event.id.op)) return;
  for (const auto& argument : event.arguments)
    if (const auto* mark = find(argument))
      compare(*mark);
    else if (argument.isTensor() && is_sharded(argument.toTensor()))
      compare_parts(argument.toTensor());
}

void StateWrites::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  if (!writes_state(event.id.phase, event.id.op)) return;
  const PlainTensors guard;
  for (const auto& result : op_results(event, results))
    if (auto* mark = find(result.tensor))
      mark->shards = digests_of_shards(mark->tensor);
    else if (is_sharded(result.tensor) && !parts_.empty())
      for (const auto& shard : sharded(result.tensor).shards()->local_tensors())
        if (const auto part = parts_.find(shard.const_data_ptr()); part != parts_.end())
          part->second.digest = digest_of_shard(shard);
}

void StateWrites::after_move(const MoveEvent& event) {
  const PlainTensors guard;
  if (event.id.op == kShareUpdate)
    for (const auto& shard : event.shards_after)
      parts_[shard.const_data_ptr()] = {event.id.module, shard, digest_of_shard(shard)};
  if (event.id.op == kGatherUpdated)
    for (const auto& shard : event.shards_before) compare_part(shard);
}

void StateWrites::compare_parts(const at::Tensor& tensor) {
  const PlainTensors guard;
  if (!parts_.empty())
    for (const auto& shard : sharded(tensor).shards()->local_tensors()) compare_part(shard);
}

void StateWrites::compare_part(const at::Tensor& shard) {
  const auto part = parts_.find(shard.const_data_ptr());
  if (part == parts_.end() || !change_.empty() || digest_of_shard(shard) == part->second.digest) return;
  change_ = fmt::format("the part of {} that a replica updates", part->second.name);
}

std::string StateWrites::take_change(const TrainingState& state) {
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) {
      const auto* mark = find(tensor);
      if (mark)
        compare(*mark);
      else if (change_.empty())
        change_ = fmt::format("{}{}, another tensor than when the step began,", prefix, entry.name);
    }
  marks_.clear(), parts_.clear();
  return std::exchange(change_, {});
}

}  // namespace lockstep::trainer

#include "trainer/state/state_mark.h"

#include <fmt/format.h>

#include "core/error.h"
#include "runtime/tensor/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/state/shard_digest.h"

namespace lockstep::trainer {
namespace {

template <class Visit>
void for_each_shard(const TrainingState& state, const Visit& visit) {
  const PlainTensors guard;
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) {
      const auto& ranks = layout_of(tensor).mesh().local_ranks();
      const auto& shards = sharded(tensor).shards()->whole();
      for (size_t i = 0; i < ranks.size(); ++i) visit(prefix + entry.name, ranks[i], shards[i]);
    }
}

}  // namespace

std::vector<Digest> StateMark::of(const TrainingState& state) {
  std::vector<Digest> digests;
  for_each_shard(state,
                 [&](const std::string&, int, const at::Tensor& shard) { digests.push_back(digest_of_shard(shard)); });
  return digests;
}

std::string StateMark::first_change(const TrainingState& state) const {
  const auto now = of(state);
  LOCKSTEP_CHECK_EQ(now.size(), digests_.size(), "tensors of the state");
  std::string found;
  size_t next = 0;
  for_each_shard(state, [&](const std::string& name, int rank, const at::Tensor&) {
    const bool is_same = now[next] == digests_[next];
    ++next;
    if (found.empty() && !is_same) found = fmt::format("{} on rank {}", name, rank);
  });
  return found;
}

}  // namespace lockstep::trainer

#include "trainer/state/state_mark.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/state/shard_digest.h"

namespace lockstep::trainer {

std::vector<Digest> StateMark::of(const TrainingState& state) {
  std::vector<Digest> digests;
  for (const auto& entry : state)
    for (const auto& each : entry.tensors())
      for (const auto& shard : digests_of_shards(each.tensor)) digests.push_back(shard);
  return digests;
}

std::string StateMark::first_change(const TrainingState& state) const {
  const auto now = of(state);
  LOCKSTEP_CHECK_EQ(now.size(), digests_.size(), "tensors of the state");
  const auto changed = std::mismatch(now.begin(), now.end(), digests_.begin()).first - now.begin();
  ptrdiff_t next = 0;
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors())
      for (const int rank : layout_of(tensor).mesh().local_ranks())
        if (next++ == changed) return fmt::format("{}{} on rank {}", prefix, entry.name, rank);
  return "";
}

}  // namespace lockstep::trainer

#pragma once
#include "runtime/context/observer.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/spec.h"

namespace lockstep {

/// A tensor before a move between two layouts, and where it went: enough to move it again.
struct MovedValue {
  /// Copies what lies on this process's ranks.
  explicit MovedValue(const MoveEvent& event) : before(&event.before), after(&event.after) {
    const PlainTensors guard;
    for (const auto& shard : event.shards_before) shards.push_back(shard.clone());
  }

  const TensorSpec *before, *after;  ///< they live as long as their mesh
  Shards shards;
};

}  // namespace lockstep

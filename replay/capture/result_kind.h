#pragma once
#include "consistency/bounds/error_bounds.h"
#include "replay/format/recording.h"
#include "runtime/context/observer.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {

/// What is recorded of a result, and of the same one in a replay.
inline ResultKind kind_of(const OpEvent& event, const OpResult& result) {
  if (result.is_alias) return ResultKind::kAlias;
  if (is_unwritten(event.plan.rule)) return ResultKind::kUnwritten;
  return sharded(result.tensor).shards()->is_pending() ? ResultKind::kPending : ResultKind::kDigest;
}

}  // namespace lockstep::replay

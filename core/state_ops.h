#pragma once
#include <string_view>

#include "core/phase.h"

/// How a step's update comes into parameters and optimizer state: what is compared whatever is sampled, and all that
/// may write there.
namespace lockstep {

/// The moves by which replicas that share an update out take their parts, and give each other what they have updated.
inline constexpr const char *kShareUpdate = "share_update", *kGatherUpdated = "gather_updated";
inline bool shares_update(std::string_view move) { return move == kShareUpdate || move == kGatherUpdated; }

/// The optimizer's ops, and those that put together what replicas gave each other.
inline bool writes_state(Phase phase, std::string_view op) {
  return phase == Phase::kOptimizer || (phase == Phase::kReduce && op == "copy_");
}

}  // namespace lockstep

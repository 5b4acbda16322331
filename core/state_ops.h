#pragma once
#include <string_view>

#include "core/phase.h"

/// How a step's update comes into parameters and optimizer state: what is compared whatever is sampled, and all that
/// may write there.
namespace lockstep {

/// The move by which replicas that share an update out give each other what they have updated.
inline constexpr const char* kGatherUpdated = "gather_updated";

/// The optimizer's ops, and those that put together what replicas gave each other.
inline bool writes_state(Phase phase, std::string_view op) {
  return phase == Phase::kOptimizer || (phase == Phase::kReduce && op == "copy_");
}

}  // namespace lockstep

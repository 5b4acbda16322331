#pragma once
#include <string>

#include "trainer/sharding/sharding_plan.h"

namespace lockstep::trainer {

/// Throws BadInput, naming `key`, the setting, and another length, where canonical numerics cannot take sequences of
/// this length as a plan cuts them for ring_attention(): parts begin at multiples of mesh_ops::kAttentionBlock.
void require_ring_fits(const ShardingPlan& plan, const std::string& key, int64_t length);

}  // namespace lockstep::trainer

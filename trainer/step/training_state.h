#pragma once
#include "core/digest/digest.h"
#include "models/module.h"
#include "trainer/optim/optimizer.h"
#include "trainer/step/sharding_plan.h"

namespace lockstep::trainer {

/// Initial parameters, each tensor of their divisions drawn by name and global index from `seed`, and assigned to the
/// model, with zero optimizer state.
TrainingState initial_state(models::Model& model, const ShardingPlan& plan, const Optimizer& optimizer, uint64_t seed);

/// Copies the values of `source` (same names, slots and sizes, any mesh, any domain) into `target`.
void copy_state(const TrainingState& source, TrainingState& target);

/// Over all names and gathered values: equal states have equal digests, on any mesh.
Digest state_digest(const TrainingState& state);

}  // namespace lockstep::trainer

#pragma once
#include "models/module.h"
#include "trainer/optim/optimizer.h"
#include "trainer/step/sharding_plan.h"

namespace lockstep::trainer {

/// Initial parameters, each tensor of their divisions drawn by name and global index from `seed`, and assigned to the
/// model, with zero optimizer state.
TrainingState initial_state(models::Model& model, const ShardingPlan& plan, const Optimizer& optimizer, uint64_t seed);

/// Copies the values of `source` (same names, slots and sizes, any mesh, any domain) into `target`.
void copy_state(const TrainingState& source, TrainingState& target);

}  // namespace lockstep::trainer

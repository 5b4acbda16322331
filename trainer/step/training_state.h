#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/digest.h"
#include "models/module.h"
#include "trainer/sharding_plan.h"

namespace lockstep::trainer {

/// A parameter and its optimizer state, all in the parameter's stored layout.
struct ParameterState {
  std::string name;
  at::Tensor value, mean, square;
  models::Division division;  ///< the tensors that it is stored as
};

/// Everything that a step changes.
using TrainingState = std::vector<ParameterState>;

/// Initial parameters, each tensor of their divisions drawn by name and global index from `seed`, and assigned to the
/// model, with zero optimizer state.
TrainingState initial_state(models::Model& model, const ShardingPlan& plan, uint64_t seed);

/// Copies the values of `source` (same names and sizes, any mesh, any domain) into `target`.
void copy_state(const TrainingState& source, TrainingState& target);

/// Over all names and gathered values: equal states have equal digests, on any mesh.
Digest state_digest(const TrainingState& state);

}  // namespace lockstep::trainer

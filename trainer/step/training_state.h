#pragma once
#include "models/module.h"
#include "trainer/optim/optimizer.h"
#include "trainer/stages/stages.h"

namespace lockstep::trainer {

/// Of one parameter, without tensors.
ParameterState description_of(const models::Parameter& parameter, const ParameterSettings& settings);

/// Initial parameters, each tensor of their divisions drawn by name and global index from `seed`, and assigned to the
/// model, with the optimizer's state before the first step. `settings`: of each parameter, in the model's order.
/// What of `job` is heeded: its seed, whether replicas share updates (update_layout()) and whether the host keeps the
/// optimizer's state.
TrainingState initial_state(models::Model& model, const Stages& stages, const Optimizer& optimizer,
                            const std::vector<ParameterSettings>& settings, const Job& job);

/// Gives slots that follow values (SlotKind) the values, once other ones are in place.
void follow_values(TrainingState& state);

/// Copies the values of `source` (same names, slots and sizes, any mesh, any domain) into `target`.
void copy_state(const TrainingState& source, TrainingState& target);

}  // namespace lockstep::trainer

#pragma once
#include "trainer/optim/parameter_state.h"
#include "trainer/weights/weight_source.h"

namespace lockstep::trainer {

/// Loads parameters, on any mesh, and leaves optimizer state alone: every rank reads the rows that it holds. BadInput,
/// naming the first, where the weights are those of another model than `model`, or the state has other tensors. Only
/// files and memory of this process are touched; shards must have arrived (ShardSet::whole()).
void load_weights(const WeightSource& source, const ModelSection& model, TrainingState& state);

/// The same, of a folder (open_weights()) that may be damaged for one process alone: throws on all ranks what it throws
/// on any.
void load_weights_together(const std::string& folder, const ModelSection& model, TrainingState& state);

}  // namespace lockstep::trainer

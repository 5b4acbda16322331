#pragma once
#include <string>

#include "trainer/checkpoint_file.h"
#include "trainer/training_state.h"

namespace lockstep::trainer {

/// Saves parameters and optimizer state, each rank's cut as a chunk, copies of a cut once, fused parameters as the
/// tensors that they divide into. Every process writes its own; the one of rank 0 makes them a checkpoint, and all
/// return after that. Names: "NAME", "optimizer.mean.NAME", "optimizer.square.NAME".
void save_state(const std::string& folder, const CheckpointMetadata& metadata, const TrainingState& state);

/// Loads into a state of any mesh; bits are those that were saved. FileError or BadInput names what does not fit.
CheckpointMetadata load_state(const std::string& folder, TrainingState& state);

}  // namespace lockstep::trainer

#pragma once
#include <string>

#include "runtime/tensor/mesh.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// Saves, with the state's digest (state_digest()) in the metadata, parameters and optimizer state, each rank's cut as
/// a chunk, copies of a cut once, fused parameters as the tensors that they divide into. Every process writes its own;
/// the one of rank 0 makes them a checkpoint, and all return after that. Names: "NAME" and, of what the optimizer
/// keeps, "optimizer.mean.NAME" (StateTensor). Throws on all ranks what it throws on any (together()); FileError where
/// the processes do not see one disk.
void save_state(const std::string& folder, CheckpointMetadata metadata, const TrainingState& state);

/// The number of a save into `folder` (next_attempt()): the highest that any process sees, before any writes. A
/// collective.
int64_t agreed_attempt(const std::string& folder, const Mesh& mesh);

/// Loads into a state of any mesh; bits are those that were saved. FileError or BadInput names what does not fit: a
/// tensor of another size, a state whose digest is not that of the saved one, and one that only the checkpoint or only
/// the state has; on all ranks, if on any.
CheckpointMetadata load_state(const std::string& folder, TrainingState& state);

}  // namespace lockstep::trainer

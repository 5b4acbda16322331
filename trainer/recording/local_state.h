#pragma once
#include <vector>

#include "replay/recording.h"
#include "trainer/training_state.h"

namespace lockstep::trainer {

/// The parts of the state that local rank `index` holds: "NAME", "optimizer.mean.NAME", "optimizer.square.NAME".
std::vector<replay::RecordedTensor> local_state(const TrainingState& state, size_t index);

/// The inverse. Throws FileError naming the tensor that is missing or does not fit.
void load_local_state(const std::vector<replay::RecordedTensor>& tensors, TrainingState& state, size_t index);

}  // namespace lockstep::trainer

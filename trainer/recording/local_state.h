#pragma once
#include <vector>

#include "replay/format/recording.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// The parts of the state that local rank `index` holds: "NAME" and, of what the optimizer
/// keeps, "optimizer.mean.NAME" (StateTensor).
std::vector<replay::RecordedTensor> local_state(const TrainingState& state, size_t index);

/// The inverse. Throws FileError naming the tensor that is missing or does not fit.
void load_local_state(const std::vector<replay::RecordedTensor>& tensors, TrainingState& state, size_t index);

}  // namespace lockstep::trainer

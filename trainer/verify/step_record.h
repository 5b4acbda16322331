#pragma once
#include "consistency/comparison.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// What a step gave and left. Tensors where they lie: nothing is gathered. Optimizer state that follows parameters
/// (averages) is with those: what holds of their errors holds of its.
StepRecord record_of(int64_t step, const StepResult& result, const TrainingState& state);

/// Whether a parameter or a part of the optimizer's state that differs after a step is what it was before it, wherever
/// it is wrong in this process. `start`: before the step, on one device; `state`: after it.
bool is_unchanged(const Difference& difference, const TrainingState& start, const TrainingState& state);

}  // namespace lockstep::trainer

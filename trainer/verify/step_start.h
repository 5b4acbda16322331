#pragma once
#include <vector>

#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// The state that the last of a row of steps began from, to begin it again. A copy of the state is made before every
/// sixteenth step alone: the steps since are repeated when it is asked for, which gives the same bits.
class StepStart {
 public:
  /// A run on one device is about to make this step from `state`. Steps that are noted follow each other.
  void note(const TrainingState& state, int64_t step, const TokenBatch& batch, double learning_rate);

  /// The state was changed by something else than the step that was noted last.
  void forget() { steps_.clear(); }

  /// Brings `run`, one like that which noted the steps, to where the last one began. REQUIRES: note().
  void restore(TrainingRun& run) const;

 private:
  struct Step {
    int64_t number;
    TokenBatch batch;
    double learning_rate;
  };
  static constexpr size_t kStepsPerCopy = 16;

  std::vector<at::Tensor> copy_;  ///< before the first of steps_: the tensors of each parameter
  std::vector<Step> steps_;
};

}  // namespace lockstep::trainer

#pragma once
#include "consistency/ops/roundings.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {

/// Compares a step of a run under native numerics as a whole with the same step in double on one device: losses of tokens,
/// raw gradients, loss, gradient norm and optimizer state, each rank's own shard. (Updates of parameters are compared as
/// ops, all of them.)
///
/// How far they may be apart is not a tolerance. The step in double runs once more with every op's result off by what the
/// op's own bound allows it, in random directions (Roundings). Roundings of the run are no larger, so the distance between
/// its tensors and those in double is no longer than that of the shaken step's, but for chance
/// (largest_ratio_of_lengths()). docs/bounds.md says more.
class NativeRunCheck {
 public:
  /// `pair`: the two steps in double; `run`: on the mesh of `options`, keeping gradients. Both must outlive this.
  NativeRunCheck(const Job& job, const TrainingRun::Options& options, StepVerifier& pair, TrainingRun& run);

  /// Before `step`: the pair goes on from the run's state.
  void begin(int64_t step);

  /// After it, on the pair and on the run, which gave `result`: adds to `check` how far they are apart, and, if that is
  /// too far, that; then the run makes its step again from its start, with all of its ops compared. A collective of the
  /// run's mesh. REQUIRES: begin(); check.agrees().
  void judge(int64_t step, const TokenBatch& batch, double learning_rate, const StepResult& result, StepCheck& check);

 private:
  void explain(int64_t step, const TokenBatch& batch, double learning_rate, StepCheck& check);

  TrainingRun shaken_;
  StepVerifier& pair_;
  TrainingRun& run_;
};

}  // namespace lockstep::trainer

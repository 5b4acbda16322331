#pragma once
#include "consistency/ops/decisions.h"
#include "trainer/verify/op_verifier.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {

/// Compares a step of a run under native numerics as a whole with the same step in double on one device: losses of
/// tokens, raw gradients, loss, gradient norm and optimizer state, each rank's own shard. (Updates of parameters are
/// compared as ops, all of them.)
///
/// How far they may be apart is not a tolerance. The step in double runs once more with every op's result off by what
/// the op's own bound allows it, in random directions (Roundings). Roundings of the run's ops are no larger, so the
/// distance between its tensors and those in double is no longer than that of the shaken step's, but for chance
/// (largest_ratio_of_lengths()). docs/bounds.md says what that takes for granted. Each update has to have run as often
/// as on one device, and nothing else may have written to the state. Where a step is too far, comes again, and every op
/// and move of it is within its bound, but one decided otherwise than in double (Decisions), that is no fault.
class NativeRunCheck {
 public:
  /// `pair`: the two steps in double; `run`: on the mesh of `options`, keeping gradients. Both must outlive this.
  NativeRunCheck(const Job& job, const TrainingRun::Options& options, StepVerifier& pair, TrainingRun& run);

  /// Before `step`: the pair goes on from the run's state.
  void begin(int64_t step);

  /// After it, on the pair and on the run, which gave `result` and whose ops `ops` watched: adds to `check` how far
  /// they are apart (of this process's shards), and, if that is too far, that; then the run makes its step again from
  /// its start, with all of its ops compared. A collective of the run's mesh. REQUIRES: begin(); check.agrees(); `ops`
  /// compares all updates.
  void judge(int64_t step, const TokenBatch& batch, double learning_rate, const StepResult& result, OpVerifier& ops,
             StepCheck& check);

 private:
  StepRecord record_of_run(int64_t step, const StepResult& result);
  /// How `run` and the ops of its optimizer compare with the step in double and the shaken one. Local.
  Comparison compared(const StepRecord& run, const std::vector<std::string>& updates) const;
  void shake(int64_t step, const TokenBatch& batch, double learning_rate);
  void explain(int64_t step, const TokenBatch& batch, double learning_rate, StepCheck& check);
  /// What the step decides in double. Local.
  Decisions exact_decisions(int64_t step, const TokenBatch& batch, double learning_rate);

  TrainingRun shaken_;
  StepResult shaken_result_;
  std::vector<std::string> updates_;  ///< the optimizer's ops on one device
  StepVerifier& pair_;
  TrainingRun& run_;
};

}  // namespace lockstep::trainer

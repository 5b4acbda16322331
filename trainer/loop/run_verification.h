#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "trainer/launch/rendezvous.h"
#include "trainer/loop/run_checkpoints.h"
#include "trainer/state/state_mark.h"
#include "trainer/verify/native_run_check.h"
#include "trainer/verify/op_verifier.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {

/// The run's mesh, ranks and transport, as the job and the processes say.
TrainingRun::Options run_options(const Job& job, const Processes& processes);

/// What the steps of a run are compared with, by the job's modes: mode step with one device's, mode ops op by op. Under
/// canonical numerics the run itself is compared; native: two runs in float64 that go on from its state, and its ops.
class RunVerification {
 public:
  /// All are borrowed.
  RunVerification(const Job& job, const Processes& processes, TrainingRun& run);

  bool compares_bits() const { return steps_ && StepVerifier::compares_bits(job_); }
  bool is_due(int64_t step) const { return (steps_ || ops_) && (step - 1) % job_.verify.every == 0; }

  /// The run begins with step `first` and sample `sample`; `is_resumed`: from what `checkpoints` has loaded. Data and
  /// rates are read once more from here on, by readers that count by themselves.
  void begin(int64_t first, int64_t sample, bool is_resumed, const RunCheckpoints& checkpoints);

  /// A step of the run itself.
  struct Made {
    StepResult result;
    double seconds = 0;
    StepCheck check = {};  ///< if it was compared
  };
  using MakeStep = std::function<Made()>;
  /// Runs `step` with what modes step and ops compare. `make_step` makes the run's own step where mode step does not;
  /// it names the op where a number is not finite.
  Made check(int64_t step, const TokenBatch& batch, double rate, const MakeStep& make_step);

  /// Compares the run's state with what `step`, which was checked last, left: on one device; under native numerics on
  /// the run itself.
  StepCheck check_left(int64_t step);

 private:
  void expect_batches(int64_t first, int64_t sample);
  StepCheck compared(int64_t step, const TokenBatch& batch, double rate, const MakeStep& make_step);
  StepCheck check_native_start(int64_t step);
  StepCheck check_unchanged(int64_t step) const;
  void judge_whole(int64_t step, const TokenBatch& batch, double rate, const StepResult& result, StepCheck& check);

  const Job& job_;
  TrainingRun& run_;
  std::unique_ptr<StepVerifier> steps_;
  std::optional<OpVerifier> ops_;
  std::unique_ptr<NativeRunCheck> whole_;  ///< of native numerics
  StateMark left_;                         ///< native: what the step that was checked last has left
  int64_t left_by_ = -1;                   ///< that step
  int64_t first_ = 1;
};

}  // namespace lockstep::trainer

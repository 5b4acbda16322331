#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "consistency/blame.h"
#include "consistency/comparison.h"
#include "consistency/ops/op_check.h"
#include "replay/store/op_case.h"
#include "trainer/step/training_run.h"
#include "trainer/verify/step_record.h"
#include "trainer/verify/step_start.h"

namespace lockstep {
class BlameObserver;
class OpTrace;
}  // namespace lockstep

namespace lockstep::trainer {

/// What checking one step found. Of several processes each may see another difference, or none: `difference` and
/// `blame` are the same on all.
struct StepCheck {
  Comparison comparison;                  ///< what this process sees
  std::string difference;                 ///< the first value that differs, of the lowest rank that sees one, or empty
  StepResult result;                      ///< of the mesh
  double reference_loss = 0;              ///< of one device
  std::optional<Blame> blame;             ///< the first thing that differs, when the step does not agree
  std::optional<replay::OpCase> op_case;  ///< that op, to be run again alone: where one is to blame, on who blames it
  double bytes = 0;                       ///< that one rank sent in the step
  double seconds = 0;                     ///< of the step on the mesh
  double seconds_ratio = 0;               ///< over the time on one device
  std::optional<OpCheck::Counts> ops;     ///< of mode ops, since the run began
  /// Native: the op in which roundings decided otherwise than in double, though each op is within its bound: what the
  /// run gave as a whole is another function then, and cannot be compared. Empty: none.
  std::string decided_otherwise = {};
  double run_over_bound = 0;  ///< native: the largest distance of the run from its step in double, of its bound

  bool agrees() const { return difference.empty(); }
};

/// Steps of a job on a mesh beside the same steps on one device, through the same dispatch. Canonical numerics: their
/// bits; native: both in the float64 domain, to 1e-9.
///
/// The reference makes its first state itself, and goes on from what its own last step left. A step that follows one
/// that agreed (or is the first) begins with a comparison of the states: under canonical numerics a wrong initial
/// value, a wrong load and a write between two steps show there.
class StepVerifier {
 public:
  /// `rules`: of the mesh's run; the reference always has the built-in ones.
  StepVerifier(const Job& job, TrainingRun::Options options);

  /// Compares `run` itself, which must outlive this and keep its gradients. REQUIRES: canonical numerics.
  StepVerifier(const Job& job, const TrainingRun::Options& options, TrainingRun& run);

  static bool compares_bits(const Job& job) { return job.numerics.is_canonical(); }

  /// Both continue from `state` (any mesh, any domain) with step `next_step`; nothing checks it.
  void load(const TrainingState& state, int64_t next_step);

  /// The reference continues with step `next_step` from what `load` gives it, on one device.
  void reload(const std::function<void(TrainingState&)>& load, int64_t next_step);

  /// From now on the batch of each step has to be what this gives for it: the data, read by somebody else.
  void expect_batches(std::function<TokenBatch(int64_t step)> batches) { batches_ = std::move(batches); }

  /// The same of its learning rate: by a schedule that is not the run's.
  void expect_rates(std::function<double(int64_t step)> rates) { rates_ = std::move(rates); }

  /// Compares a state (any domain, on `mesh`) with the reference's, bit by bit, before `step`.
  StepCheck check_start(int64_t step, const TrainingState& state, const Mesh& mesh);

  /// Runs the step on both. Throws Inconsistency where one device's loss or gradient is not finite; where the mesh's
  /// alone is not, that is a difference. On a difference both run it again from their start, to find the first thing
  /// that differs, and what it takes. An error of ours or of LibTorch's says on which mesh and in which step it came.
  StepCheck check(int64_t step, const TokenBatch& batch, double learning_rate);

  TrainingRun& candidate() { return *candidate_; }

  /// What one device made of the step that was checked last. REQUIRES: native numerics, where it is kept for so long.
  StepRecord reference_record(int64_t step) const { return record_of(step, reference_result_, reference_.state()); }

  /// Gives `state` what the step that was checked last began from.
  void restore_start(TrainingState& state);

 private:
  double tolerance() const { return bits_ ? kBits : kFloat64Tolerance; }
  void run_both(int64_t step, const TokenBatch& batch, double learning_rate, StepCheck& check);
  Comparison compared(int64_t step, const StepResult& reference, const StepResult& result);
  StepCheck checked(int64_t step, const TokenBatch& batch, double learning_rate);
  void begin_at(int64_t next_step);
  StepCheck check_parameters(int64_t step);
  StepCheck check_batch(int64_t step, const TokenBatch& batch);
  StepCheck check_rate(int64_t step, double learning_rate);
  void explain(int64_t step, const TokenBatch& batch, double learning_rate, StepCheck& check);
  Blame blame_of_none(const StepCheck& check, const BlameObserver& blamer, const TrainingState& start);
  OpTrace trace_reference(int64_t step, const TokenBatch& batch, double learning_rate, const TrainingState& start);
  std::optional<StepResult> run_watched(int64_t step, const TokenBatch& batch, double learning_rate,
                                        const TrainingState& start, Observer& observer);
  std::optional<StepResult> try_step(int64_t step, const TokenBatch& batch, double learning_rate, std::string& why);

  Job job_;
  TrainingRun::Options options_;
  bool bits_;  ///< equality of bits (canonical numerics), or the tolerance of the float64 domain
  TrainingRun reference_;
  std::unique_ptr<TrainingRun> own_candidate_;
  TrainingRun* candidate_;
  StepStart start_;
  std::function<TokenBatch(int64_t)> batches_;  ///< empty: batches are not compared
  std::function<double(int64_t)> rates_;        ///< empty: learning rates are not compared
  StepResult reference_result_;
  int64_t next_step_ = 1;  ///< the step that the reference's state is the start of
  bool is_first_ = true;   ///< no check came before it
};

}  // namespace lockstep::trainer

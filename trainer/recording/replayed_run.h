#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/format/recording.h"
#include "replay/play/player.h"
#include "trainer/job/job_setting.h"
#include "trainer/recording/scalar_comparison.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

enum class ReplayVerdict {
  kIdentical,
  /// Native numerics on another kind of machine or device, which rounds otherwise: ops, layouts and collectives are the
  /// recorded ones, and so are the step's numbers (loss, gradient norm, ...) within 1e-4 of themselves, with bfloat16
  /// or float16 compute 2e-2. Results of ops were recorded as digests, which have no distance. Also if no bit differs:
  /// that is chance there.
  kWithinBound,
  kDiffers
};

/// What the replay of one step gave.
struct ReplayOutcome {
  int64_t step = 0;
  size_t ops = 0, collectives = 0;             ///< that were replayed
  size_t differing_results = 0;                ///< of ops
  std::vector<std::string> differing_scalars;  ///< "loss: recorded 2.5 (0x...), now 2.25 (0x...)"
  std::optional<replay::Deviation> first_difference;
  std::vector<replay::RecordedTensor> tensors_there;  ///< operands and results of the op where it stopped
  bool stopped_there = false;                         ///< at the op that was asked for
  std::string op_there;                               ///< its whole id
  std::vector<std::string> other_machine;             ///< in what this machine is another than the recorded one
  /// Where the numerics versions explain what differs: numerics_difference().
  std::string other_numerics;
  std::string stopped_by;   ///< an error that ended it early, as the recorded step may have ended
  std::string ended_early;  ///< why the recorded step did: nothing after that was compared
  ReplayVerdict verdict = ReplayVerdict::kIdentical;
  bool is_identical() const { return verdict == ReplayVerdict::kIdentical; }
  bool agrees() const { return verdict != ReplayVerdict::kDiffers; }
};

/// One rank of a recorded run, alone: state, batches and whatever other ranks sent come from its recordings.
class ReplayedRun {
 public:
  /// `first` holds a state. `changes` are made to its job, training.device among them; `make_model` as in
  /// TrainingRun::Options. Throws FileError where state and job do not fit, BadInput for a job that a job file could
  /// not hold or that does not fit the recording, and where this machine or the job's numerics do not have the device.
  explicit ReplayedRun(const replay::StepRecording& first, std::span<const Setting> changes = {},
                       std::function<std::unique_ptr<models::Model>()> make_model = {});

  /// Replays the step, which must follow the one before (or be the first). `until` as Player::load() has it. Batch and
  /// state are compared, too: the batch's ids are ones that the model knows, a recorded state is that which the steps
  /// before led to. Throws BadInput where payloads were not kept, FileError for a step of another job or rank, for one
  /// that does not start with the sample that the step before ended at, and for one that holds nothing to compare.
  ReplayOutcome replay(const replay::StepRecording& recording, const std::string& until = "");

  const TrainingState& state() const { return run_.state(); }

 private:
  void play(const replay::StepRecording& recording, const TokenBatch& batch, ReplayOutcome& outcome);
  void conclude(const replay::StepRecording& recording, const ScalarComparison& scalars, bool rounds,
                ReplayOutcome& outcome) const;

  Job job_;
  std::string recorded_job_;
  int rank_;
  int64_t first_step_;                  ///< whose state was loaded
  std::optional<int64_t> next_sample_;  ///< what the step that was replayed last ended at
  std::shared_ptr<replay::Player> player_;
  TrainingRun run_;
};

}  // namespace lockstep::trainer

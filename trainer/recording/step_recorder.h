#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/digest/digest.h"
#include "replay/capture/recorder.h"
#include "replay/store/recording_store.h"
#include "trainer/optim/schedule.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// Records the steps of a run as its job's [record] section says. A step that begins again replaces its first attempt.
class StepRecorder final : public StepListener {
 public:
  /// Listens to `run`, which it must not outlive. Throws BadInput where the folder is of another job or world, or in
  /// use. REQUIRES: the run exchanges as messages do.
  StepRecorder(const Job& job, TrainingRun& run);
  ~StepRecorder() override;

  void begin_step(int64_t step, const TokenBatch& batch, double learning_rate, const TrainingState& state) override;
  void end_step(std::span<const StepScalar> scalars) override;

  /// What ranks say to each other about a step that failed does not belong to it: a replay would not do it again.
  void stop_watching() { watching_.reset(); }
  /// The digest of the state after the step that has just ended, where the caller has it: taking one costs messages,
  /// which no recorded step may have for that.
  void note_state(const Digest& digest) { common_.state_digest = digest.text(); }
  /// Hands over the step that was recorded last, if any.
  void close_step(const std::string& reason = "");
  /// For a run that ends early: hands over a step that has not ended, with this reason, and writes what a ring holds.
  void give_up(const std::string& reason);
  /// Returns when all that is to be written is on the disk.
  void finish() { store_.finish(); }

 private:
  bool is_due(int64_t step) const { return (step - 1) % job_.record.every == 0; }
  /// Whether no replay could start at this step without a state of its own.
  bool needs_state(int64_t step) const;
  void keep_state(const TrainingState& state);
  std::vector<replay::StepRecording> finished(const std::string& reason);

  const Job& job_;
  TrainingRun& run_;
  const LearningRateSchedule schedule_;
  replay::PayloadMode mode_;
  replay::Recorder recorder_;
  replay::RecordingStore store_;
  replay::StepRecording common_;  ///< what is the same on all ranks
  std::vector<std::vector<replay::RecordedTensor>> states_;
  std::optional<ObserverScope> watching_;
  bool is_open_ = false, has_ended_ = false;
  int64_t last_recorded_ = 0, since_state_ = 0;
};

}  // namespace lockstep::trainer

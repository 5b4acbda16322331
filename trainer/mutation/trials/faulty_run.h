#pragma once
#include <optional>
#include <string>

#include "trainer/loop/run_checkpoints.h"
#include "trainer/mutation/planted_fault.h"

namespace lockstep::trainer {

/// The batch of a run's data that begins with `sample`: one of the suite's (suite_batch.h) for each step.
TokenBatch batch_at(const Job& job, int64_t sample);

/// A run of a mutant's setup with its fault in it, step by step as the training loop makes it. Its job's checkpoints
/// are in `folder`, where it resumes from if the mutant does.
class FaultyRun {
 public:
  FaultyRun(const Mutant& mutant, const std::string& folder);

  /// Goes on from the checkpoint, if the mutant does. Throws as RunCheckpoints::load() does.
  void load();
  void load_into(TrainingState& state) const { checkpoints_->load_into(state); }

  int64_t first_step() const { return first_; }
  /// The number of the sample that step `step` begins with.
  int64_t sample(int64_t step) const { return sample_ + (step - first_) * job_.training.global_batch_size; }
  TokenBatch batch(int64_t step) { return fault_.batch(step, batch_at(job_, sample(step))); }
  double rate(int64_t step) { return fault_.rate(step, schedule_.learning_rate(step)); }
  /// kMutationSteps + 1: the end.
  void before_step(int64_t step) { fault_.before_step(run_.state(), step); }

  const Job& job() const { return job_; }
  TrainingRun& run() { return run_; }
  const PlantedFault& fault() const { return fault_; }

 private:
  TrainingRun::Options faulty_options(const Setup& setup);

  bool resumes_;
  PlantedFault fault_;
  Job job_;
  Processes processes_;
  TrainingRun run_;
  std::optional<RunCheckpoints> checkpoints_;
  LearningRateSchedule schedule_;
  ObserverScope planted_;
  int64_t first_ = 1, sample_ = 0;
};

}  // namespace lockstep::trainer

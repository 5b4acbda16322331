#pragma once
#include <functional>
#include <optional>
#include <string>

#include "trainer/checkpoint/folder_lock.h"
#include "trainer/checkpoint/saved_origins.h"
#include "trainer/identity/run_start.h"
#include "trainer/job/job.h"
#include "trainer/launch/rendezvous.h"
#include "trainer/optim/schedule.h"
#include "trainer/state/background_save.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// The checkpoints of one run: what it goes on from, what it saves, and what may be gone back to. Every process calls
/// each; what one throws, all throw. The folders that the run writes to are locked for as long as this lives, by the
/// process of rank 0.
class RunCheckpoints {
 public:
  /// All are borrowed. Throws as lock_folders() and run_start() do, and where the hosts do not share the disk.
  RunCheckpoints(const Job& job, const Processes& processes, TrainingRun& run);

  /// Loads what the run goes on from and says so; none if it begins anew. Throws as load_state() does, and FileError if
  /// the schedule is not that of the run that saved it, or the next sample not what its steps leave.
  std::optional<CheckpointMetadata> load(const std::function<void(const std::string&)>& note);

  /// The same state into another one of the job, of any mesh. REQUIRES: load() gave one.
  void load_into(TrainingState& state) const;

  /// What comes after `step`, counted anew: every step of the job takes a global batch. None where the run follows
  /// another one, whose batches may have had other sizes.
  std::optional<int64_t> sample_after(int64_t step) const;

  bool is_due(int64_t step) const;

  /// Saves the state after `step`; `sample` comes next, `verified` is as for way_back(). Returns the folder. Canonical
  /// numerics: Inconsistency, and nothing is saved, if copies of the state differ. checkpoint.async_mode "async": the
  /// folder is a checkpoint some steps later, at finish() at the latest.
  std::string save(int64_t step, int64_t sample, int64_t verified);

  /// Between two steps: whether this process can go on with a save that is under way. No collective.
  bool has_news() const { return background_.has_news(); }
  /// Goes on with it; all do, if all have news. Throws on all what failed on any.
  void go_on();
  /// Waits for it.
  void finish();

  /// Seconds that this process has stood still for checkpoints since it was last asked.
  double take_waited() { return std::exchange(waited_, 0); }

  /// "from outputs/checkpoint/step-4, ...": where to go back to when a step turns out wrong, and `verified` is the last
  /// one that was found right (0: none was).
  std::string way_back(int64_t verified);

 private:
  std::string save_into(const std::string& root, int64_t step, int64_t sample);
  void finish_or_lose();
  std::string save_in_background(int64_t step, int64_t sample);
  CheckpointMetadata metadata_of(int64_t step, int64_t sample) const;
  std::string locked_root_for_interrupted(std::vector<FolderLock>& lock) const;
  void require_same_rate(const std::string& folder, const CheckpointMetadata& metadata) const;
  bool may_have_another_rate() const;
  void require_next_sample(const std::string& folder, const CheckpointMetadata& metadata) const;
  std::string rate_text(int64_t step) const;
  void note_other_numerics(const CheckpointMetadata& metadata,
                           const std::function<void(const std::string&)>& note) const;

  const Job& job_;
  const Processes& processes_;
  TrainingRun& run_;
  LearningRateSchedule schedule_;
  std::vector<FolderLock> locks_;
  RunStart start_;
  SavedOrigins known_;  ///< the background's while it has something under way
  double waited_ = 0;
  BackgroundSave background_;  ///< ends before the locks do
};

}  // namespace lockstep::trainer

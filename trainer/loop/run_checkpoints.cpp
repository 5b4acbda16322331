#include "trainer/loop/run_checkpoints.h"

#include "core/error.h"
#include "core/numerics_version.h"
#include "trainer/job/job_file.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/shared_folder.h"
#include "trainer/launch/together.h"
#include "trainer/state/replicas.h"
#include "trainer/state/state_checkpoint.h"

namespace lockstep::trainer {

RunCheckpoints::RunCheckpoints(const Job& job, const Processes& processes, TrainingRun& run)
    : job_(job), processes_(processes), run_(run), schedule_(job) {
  std::vector<FolderToLock> folders{{job.job.dump_folder, "job.dump_folder"}};
  if (job.checkpoint.enable) folders.push_back({checkpoint_root(job), "checkpoint.folder"});
  together(run.mesh(), [&] {
    if (processes_.is_first()) locks_ = lock_folders(folders);
  });
  if (job.checkpoint.enable && processes.transport) require_shared_folder(checkpoint_root(job), run.mesh());
  together(run.mesh(), [&] { start_ = run_start(job_); });
}

std::optional<CheckpointMetadata> RunCheckpoints::load(const std::function<void(const std::string&)>& note) {
  if (!start_.step) return std::nullopt;
  const auto folder = checkpoint_path(checkpoint_root(job_), *start_.step);
  auto metadata = load_state(folder, run_.state());
  note(fmt::format("resumed after step {} from {}", metadata.step, folder));
  for (const auto& changed : start_.allowed) note(fmt::format("changed as allowed: {}", changed));
  require_same_rate(folder, metadata);
  require_right_sample(folder, metadata);
  if (job_.numerics.is_canonical() && metadata.numerics_version != kNumericsVersion)
    note_other_numerics(metadata, note);
  return metadata;
}

void RunCheckpoints::load_into(TrainingState& state) const {
  load_state(checkpoint_path(checkpoint_root(job_), start_.step.value()), state);
}

/// Keys that were allowed to change may change it; otherwise it is the schedule itself that is another.
void RunCheckpoints::require_same_rate(const std::string& folder, const CheckpointMetadata& metadata) const {
  const auto here = rate_text(metadata.step + 1);
  if (metadata.learning_rate.empty() || !start_.allowed.empty() || here == metadata.learning_rate) return;
  fail<FileError>(
      "{}: the run that saved it would go on with a learning rate of {}, this one with {} for the same job: this build "
      "has another schedule. Go on with the build that saved it.",
      folder, metadata.learning_rate, here);
}

/// Of a run whose batches were never of another size, which a change that was allowed may have made them.
void RunCheckpoints::require_right_sample(const std::string& folder, const CheckpointMetadata& metadata) const {
  const bool may_have_changed = metadata.origin.identity.empty() || !metadata.origin.parents.empty();
  const auto right = metadata.step * job_.training.global_batch_size;
  if (may_have_changed || !start_.allowed.empty() || metadata.sample == right) return;
  fail<FileError>(
      "{}: says that sample {} comes next; {} steps of {} samples come to {}: it was saved wrongly. Report this.",
      folder, metadata.sample, metadata.step, job_.training.global_batch_size, right);
}

std::string RunCheckpoints::rate_text(int64_t step) const { return fmt::format("{:a}", schedule_.learning_rate(step)); }

/// The run goes on: its bits are still those of any mesh, but no longer those of the run that was saved.
void RunCheckpoints::note_other_numerics(const CheckpointMetadata& metadata,
                                         const std::function<void(const std::string&)>& note) const {
  note(fmt::format("checkpoint of step {} was written by {}, this is {}: the bits from here on {} those of that run",
                   metadata.step, numerics_version_text(metadata.numerics_version), kNumericsVersion,
                   metadata.numerics_version ? "are not" : "may not be"));
}

bool RunCheckpoints::is_due(int64_t step) const {
  return job_.checkpoint.enable && (step % job_.checkpoint.interval == 0 || step == job_.training.steps);
}

std::string RunCheckpoints::save(int64_t step, int64_t sample, int64_t verified) {
  if (const auto text = replica_difference(run_.state(), {}); !text.empty())
    fail<Inconsistency>("step {}: {}. A copy has drifted: the state is not saved. Resume {}", step, text,
                        way_back(verified));
  if (job_.checkpoint.enable) {
    auto folder = save_into(checkpoint_root(job_), step, sample);
    together(run_.mesh(), [&] {
      if (processes_.is_first())
        remove_old_checkpoints(checkpoint_root(job_), job_.checkpoint.keep_latest_k, start_.origin, known_);
    });
    return folder;
  }
  std::vector<FolderLock> lock;
  std::string root;
  together(run_.mesh(), [&] {
    if (processes_.is_first()) root = locked_root_for_interrupted(lock);
  });
  root = texts_of_all_ranks(run_.mesh(), root)[0];
  return save_into(root, step, sample);
}

std::string RunCheckpoints::save_into(const std::string& root, int64_t step, int64_t sample) {
  together(run_.mesh(), [&] {
    if (processes_.is_first()) remove_abandoned(root, step);
  });
  auto folder = checkpoint_path(root, step);
  save_state(folder, {step, sample, to_toml(job_), kNumericsVersion, start_.origin, rate_text(step + 1)}, run_.state());
  return folder;
}

/// Where another run writes, the state goes beside it.
std::string RunCheckpoints::locked_root_for_interrupted(std::vector<FolderLock>& lock) const {
  auto root = root_for_interrupted(job_, start_.origin);
  try {
    lock.emplace_back(root, "checkpoint.folder");
  } catch (const BadInput&) {
    root = folder_beside(job_, start_.origin);
    lock.emplace_back(root, "checkpoint.folder");
  }
  return root;
}

std::string RunCheckpoints::way_back(int64_t verified) {
  const auto root = checkpoint_root(job_);
  std::optional<int64_t> last, last_verified;
  for (const auto step : job_.checkpoint.enable ? own_steps(root, start_.origin, known_) : std::vector<int64_t>{}) {
    last = step;
    if (step <= verified) last_verified = step;
  }
  if (!last) return "from the start: there is no checkpoint of this run";
  const auto from = fmt::format("from {} (--checkpoint.load_step {})", checkpoint_path(root, *last), *last);
  if (!job_.verify.enable) return from + ": the last checkpoint; no step was verified";
  if (!last_verified)
    return fmt::format("from the start: no checkpoint is up to the last verified step. The last one is {}",
                       checkpoint_path(root, *last));
  return fmt::format("from {} (--checkpoint.load_step {}): the last checkpoint up to step {}, which was verified last",
                     checkpoint_path(root, *last_verified), *last_verified, verified);
}

}  // namespace lockstep::trainer

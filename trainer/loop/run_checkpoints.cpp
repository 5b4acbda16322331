#include "trainer/loop/run_checkpoints.h"

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "core/numerics_version.h"
#include "trainer/job/job_file.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/shared_folder.h"
#include "trainer/launch/together.h"
#include "trainer/state/replicas.h"
#include "trainer/state/state_checkpoint.h"

namespace lockstep::trainer {
namespace {

/// Adds the seconds of its life to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  ~Stopwatch() { sum_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& sum_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

RunCheckpoints::RunCheckpoints(const Job& job, const Processes& processes, TrainingRun& run)
    : job_(job), processes_(processes), run_(run), schedule_(job), background_(run.mesh()) {
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
  require_next_sample(folder, metadata);
  if (job_.numerics.is_canonical() && metadata.numerics_version != kNumericsVersion)
    note_other_numerics(metadata, note);
  return metadata;
}

void RunCheckpoints::load_into(TrainingState& state) const {
  load_state(checkpoint_path(checkpoint_root(job_), start_.step.value()), state);
}

/// Whether a key that was allowed to change has to do with the learning rate.
bool RunCheckpoints::may_have_another_rate() const {
  return std::any_of(start_.allowed.begin(), start_.allowed.end(), [](const std::string& changed) {
    return changed.starts_with("optimizer.lr") || changed.starts_with("lr_scheduler.") ||
           changed.starts_with("training.steps");
  });
}

void RunCheckpoints::require_same_rate(const std::string& folder, const CheckpointMetadata& metadata) const {
  const auto here = rate_text(metadata.step + 1);
  if (metadata.learning_rate.empty() || may_have_another_rate() || here == metadata.learning_rate) return;
  fail<FileError>(
      "{}: the run that saved it would go on with a learning rate of {}, this one with {} for the same job: this build "
      "has another schedule. Go on with the build that saved it.",
      folder, metadata.learning_rate, here);
}

std::optional<int64_t> RunCheckpoints::sample_after(int64_t step) const {
  if (!start_.origin.parents.empty()) return std::nullopt;
  return step * job_.training.global_batch_size;
}

void RunCheckpoints::require_next_sample(const std::string& folder, const CheckpointMetadata& metadata) const {
  const auto expected = sample_after(metadata.step);
  if (!expected || metadata.sample == *expected) return;
  fail<FileError>(
      "{}: its next sample is {}, but {} steps of {} samples leave off before sample {}: data would be read twice or "
      "left out. Resume from another checkpoint.",
      folder, metadata.sample, metadata.step, job_.training.global_batch_size, *expected);
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
  const Stopwatch watch(waited_);
  if (const auto text = replica_difference(run_.state(), {}); !text.empty())
    fail<Inconsistency>("step {}: {}. A copy has drifted: the state is not saved. Resume {}", step, text,
                        way_back(verified));
  if (job_.checkpoint.enable && job_.checkpoint.is_async()) return save_in_background(step, sample);
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
  save_state(folder, metadata_of(step, sample), run_.state());
  return folder;
}

CheckpointMetadata RunCheckpoints::metadata_of(int64_t step, int64_t sample) const {
  return {step, sample, to_toml(job_), kNumericsVersion, start_.origin, rate_text(step + 1)};
}

std::string RunCheckpoints::save_in_background(int64_t step, int64_t sample) {
  const auto root = checkpoint_root(job_);
  BackgroundSave::Chores chores;
  chores.before = [root, step] { remove_abandoned(root, step); };
  chores.after = [this, root] { remove_old_checkpoints(root, job_.checkpoint.keep_latest_k, start_.origin, known_); };
  auto folder = checkpoint_path(root, step);
  background_.begin(folder, metadata_of(step, sample), run_.state(), std::move(chores));
  return folder;
}

void RunCheckpoints::go_on() {
  const Stopwatch watch(waited_);
  background_.meet();
}

void RunCheckpoints::finish() {
  const Stopwatch watch(waited_);
  background_.finish();
}

/// What else was found says more than a save that fails now.
void RunCheckpoints::finish_or_lose() {
  try {
    finish();
  } catch (const FileError&) {
  }
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
  finish_or_lose();
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

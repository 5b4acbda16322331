#include "trainer/loop/train_loop.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "consistency/op_trace.h"
#include "core/error.h"
#include "core/files/atomic_file.h"
#include "core/interruption.h"
#include "runtime/context/observer.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/data/batch_reader.h"
#include "trainer/job/job_file.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/together.h"
#include "trainer/loop/run_checkpoints.h"
#include "trainer/loop/run_metrics.h"
#include "trainer/loop/run_validation.h"
#include "trainer/loop/run_verification.h"
#include "trainer/optim/schedule.h"
#include "trainer/profile/step_profiler.h"
#include "trainer/recording/step_recorder.h"
#include "trainer/state/replicas.h"
#include "trainer/state/state_digest.h"
#include "trainer/verify/finding.h"

namespace lockstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Loop {
 public:
  Loop(const Job& job, const TrainEvents& events, const Processes& processes)
      : job_(job),
        events_(events),
        processes_(processes),
        run_(job, run_options(job, processes)),
        checkpoints_(job, processes_, run_),
        schedule_(job),
        metrics_(job, run_),
        profiler_(job, run_.mesh()),
        verification_(job, processes_, run_) {
    agreed(run_.mesh(), [&] { data_ = make_dataset(job, run_.model().vocabulary()); });
    agreed(run_.mesh(), [&] {
      if (!job.record.folder.empty()) recorder_.emplace(job_, run_);
    });
    reader_.emplace(*data_, job.training.global_batch_size, rows_to_read());
    validation_.emplace(job, run_);
    resume();
    agreed(run_.mesh(), [&] {
      if (processes_.is_first()) open_files();
    });
  }

  TrainOutcome train() {
    const InterruptionHandler handler;
    metrics_.begin_run(first_);
    for (step_ = first_; step_ <= job_.training.steps && outcome_.findings.empty(); ++step_) {
      recorded_step();
      const bool interrupted = between_steps();
      if (step_ == first_) use_train_timeout(processes_, job_.comm);
      if (interrupted && recorder_) recorder_->give_up(outcome_.interrupted_by);
      // What an inconsistent step left is nothing to go on from.
      if (outcome_.findings.empty() && (interrupted || checkpoints_.is_due(step_)) && is_as_left())
        outcome_.saved_to = checkpoints_.save(step_, sample_, verified_);
      if (interrupted) break;
    }
    checkpoints_.finish();
    if (outcome_.findings.empty() && is_as_left()) all_copies_agree();
    if (recorder_) recorder_->finish();
    outcome_.state_digest = state_digest(run_.state()).text();
    return std::move(outcome_);
  }

 private:
  /// Whether to end here: a signal may come to one process only, or between the same two steps to some: they agree. In
  /// the same breath they learn whether a save that is under way can go on.
  bool between_steps() {
    const bool here = interruption_requested(), news = checkpoints_.has_news();
    if (here) outcome_.interrupted_by = interruption_signal();
    if (!processes_.transport) {
      if (news) checkpoints_.go_on();
      return here;
    }
    constexpr int64_t kInterrupted = 1, kNews = 2;
    const auto said = numbers_of_all_ranks(run_.mesh(), (here ? kInterrupted : 0) + (news ? kNews : 0));
    const auto says = [](int64_t flag) { return [flag](int64_t number) { return (number & flag) != 0; }; };
    if (std::all_of(said.begin(), said.end(), says(kNews))) checkpoints_.go_on();
    const bool any = std::any_of(said.begin(), said.end(), says(kInterrupted));
    if (any && !here) outcome_.interrupted_by = "a signal to another process";
    return any;
  }

  /// Whether the state that is saved, or that the run ends with, is what the step that was checked last has left.
  bool is_as_left() {
    if (verified_ != std::min(step_, job_.training.steps)) return true;
    const auto check = verification_.check_left(verified_);
    if (!check.agrees()) tell(check);
    return check.agrees();
  }

  void open_files() {
    write_file_atomically((std::filesystem::path(job_.job.dump_folder) / "job.toml").string(), to_toml(job_));
    metrics_.open(first_);
  }

  void resume() {
    const auto metadata = checkpoints_.load(events_.on_note);
    if (metadata) first_ = metadata->step + 1, sample_ = metadata->sample;
    verification_.begin(first_, sample_, metadata.has_value(), checkpoints_);
  }

  /// Whatever ends a run early is when its recording is wanted.
  void recorded_step() {
    if (!recorder_) return one_step();
    try {
      one_step();
      const bool is_last = step_ == job_.training.steps && outcome_.findings.empty();
      if (is_last) recorder_->note_state(state_digest(run_.state()));
    } catch (const std::exception& error) {
      give_up_recording(error.what());
      throw;
    }
    if (outcome_.findings.empty())
      recorder_->close_step();
    else
      recorder_->give_up(outcome_.findings.front());
  }

  /// What ended the run stays what is reported, even where its recording cannot be written.
  void give_up_recording(const std::string& reason) {
    try {
      recorder_->give_up(reason);
    } catch (const Error& error) {
      events_.on_note(fmt::format("the failed step could not be recorded: {}", error.what()));
    }
  }

  void one_step() {
    metrics_.begin_step();
    const auto batch = reader_->take(sample_);
    metrics_.have_batch();
    const double rate = schedule_.learning_rate(step_);
    const bool is_due = verification_.is_due(step_);
    watch_copies(!(is_due && verification_.compares_bits()));
    const auto make = [&] { return plain_step(batch, rate); };
    profiler_.begin(step_);
    const auto made = is_due ? verification_.check(step_, batch, rate, make) : make();
    profiler_.end();
    if (is_due) tell(made.check);
    if (!outcome_.findings.empty()) return;
    if (watches_copies_ && !replicas_agree(made.result)) return;
    sample_ += job_.training.global_batch_size;
    std::optional<ValidationMetrics> validation;
    if (validation_->is_due(step_)) validation = validation_->validate(step_);
    metrics_.waited_for_checkpoints(checkpoints_.take_waited());
    outcome_.steps.push_back(metrics_.end_step(step_, made.result, rate, made.seconds, is_due, validation));
    events_.on_step(outcome_.steps.back());
    if (validation) events_.on_note(validation_line(*validation, step_, job_.training.steps));
    if (const auto line = profiler_.report(); !line.empty()) events_.on_note(line);
  }

  /// One device beside the mesh, and a recording, need all of a batch.
  std::vector<Range> rows_to_read() const {
    const bool needs_all = job_.verify.enable || recorder_ || !processes_.transport;
    return needs_all ? std::vector<Range>{} : run_.own_rows();
  }

  RunVerification::Made plain_step(const TokenBatch& batch, double rate) {
    RunVerification::Made made;
    const auto before = Clock::now();
    made.result = run_step(batch, rate);
    made.seconds = seconds_since(before);
    return made;
  }

  void tell(const StepCheck& check) {
    events_.on_check(step_, check);
    if (check.agrees())
      verified_ = step_;
    else
      outcome_.findings.push_back(finding(check));
  }

  /// A step that is checked bit by bit needs no digests: each rank's values are compared. Digests are taken on the
  /// host: of a GPU's memory not after every step.
  void watch_copies(bool is_unchecked) {
    watches_copies_ = is_unchecked && job_.verify.has(kReplicasMode) && !run_.world().shard_device().is_cuda();
    copies_.clear();
    run_.on_update({});
    if (watches_copies_)
      run_.on_update([this](const ParameterState& entry) { copies_.add(entry, Copies::kParameters); });
  }

  bool replicas_agree(const StepResult& result) {
    auto numbers = result.scalars;
    numbers.insert(
        numbers.begin(),
        {{"valid_tokens", result.valid_tokens}, {"loss", result.loss}, {"gradient_norm", result.gradient_norm}});
    return no_difference(copies_.difference(run_.state(), numbers), "all copies agreed after the step before");
  }

  bool all_copies_agree() {
    return !job_.verify.has(kReplicasMode) ||
           no_difference(replica_difference(run_.state(), {}, Copies::kAll),
                         "all copies of parameters agree: optimizer state has drifted");
  }

  bool no_difference(const std::string& difference, const char* where) {
    if (difference.empty()) return true;
    outcome_.findings.push_back(fmt::format("INCONSISTENT  step {}, mesh {}: {}\n  before   {}\n  resume   {}",
                                            std::min(step_, job_.training.steps), mesh_of(job_).text(), difference,
                                            where, checkpoints_.way_back(verified_)));
    return false;
  }

  std::string finding(const StepCheck& check) {
    return fmt::format("INCONSISTENT  step {}, mesh {}: {}\n  resume   {}", step_, mesh_of(job_).text(),
                       agreed_finding(run_.mesh(), check, job_.job.dump_folder).text, checkpoints_.way_back(verified_));
  }

  /// A step whose loss or gradient is not finite runs once more, watched, to name the op where it began.
  StepResult run_step(const TokenBatch& batch, double rate) {
    try {
      return run_.step(step_, batch, rate);
    } catch (const Inconsistency& error) {
      NonFiniteObserver observer;
      try {
        const ObserverScope scope(run_.world().observers(), observer);
        run_.step(step_, batch, rate);
      } catch (const Inconsistency&) {
      }
      if (recorder_) recorder_->stop_watching();
      std::optional<Found> mine;
      if (!observer.first().empty()) mine = Found{observer.position(), observer.first()};
      const auto first = earliest(run_.mesh(), mine);
      fail<Inconsistency>("{}; the first op with a NaN or an infinity is {}; resume {}", error.what(),
                          first ? first->text : "none: parameters or optimizer state hold it",
                          checkpoints_.way_back(verified_));
    }
  }

  const Job& job_;
  const TrainEvents& events_;
  Processes processes_;
  TrainingRun run_;
  ReplicaDigests copies_;  ///< of the step's updates
  bool watches_copies_ = false;
  RunContext::Use in_run_{run_.context()};
  RunCheckpoints checkpoints_;
  LearningRateSchedule schedule_;
  std::unique_ptr<Dataset> data_;
  std::optional<BatchReader> reader_;
  std::optional<RunValidation> validation_;
  RunMetrics metrics_;
  StepProfiler profiler_;
  RunVerification verification_;
  std::optional<StepRecorder> recorder_;
  int64_t first_ = 1, step_ = 1, sample_ = 0, verified_ = 0;
  TrainOutcome outcome_;
};

}  // namespace

TrainOutcome train(const Job& job, const TrainEvents& events, const Processes& processes) {
  return Loop(job, events, processes).train();
}

}  // namespace lockstep::trainer

#include "trainer/recording/replayed_run.h"

#include <algorithm>

#include "core/digest/digest.h"
#include "core/error.h"
#include "rng/cuda_fill.h"
#include "trainer/job/mesh_degrees.h"
#include "trainer/recording/local_state.h"
#include "trainer/recording/machine_facts.h"
#include "trainer/recording/recorded_job.h"
#include "trainer/recording/recorded_step.h"

namespace lockstep::trainer {
namespace {

/// Compares the numbers of a step when it ends; before that there are none.
class ScalarListener final : public StepListener {
 public:
  ScalarListener(const replay::StepRecording& recording, const Job& job) : recording_(recording), schedule_(job) {}
  void begin_step(int64_t, const TokenBatch&, double, const TrainingState&) override {}
  void end_step(std::span<const StepScalar> scalars) override {
    comparison = compare_scalars(recording_, with_next_rate(scalars, schedule_, recording_.step));
  }

  ScalarComparison comparison;

 private:
  const replay::StepRecording& recording_;
  const LearningRateSchedule schedule_;
};

TrainingRun::Options options_for(const Job& job, int rank, std::shared_ptr<Transport> transport,
                                 std::function<std::unique_ptr<models::Model>()> make_model) {
  TrainingRun::Options options;
  options.mesh = mesh_of(job);
  options.local_ranks = {rank};
  options.loads_weights = false;
  options.transport = std::move(transport);
  options.make_model = std::move(make_model);
  return options;
}

/// Whether this is another kind of machine or device, not only another build (of any numerics version) or environment,
/// and the job may round as it likes.
bool rounds_otherwise(const Job& job, const std::vector<std::string>& differences) {
  return !job.numerics.is_canonical() && std::any_of(differences.begin(), differences.end(), [](const auto& line) {
    return !line.starts_with("build_id: ") && !line.starts_with("numerics_version: ") &&
           !line.starts_with("environment.");
  });
}

bool are_within_bound(const Job& job, const std::vector<double>& relative) {
  const double bound = job.training.mixed_precision_param == "float32" ? 1e-4 : 2e-2;
  return std::all_of(relative.begin(), relative.end(), [&](double difference) { return difference <= bound; });
}

Job replayed_job(const replay::StepRecording& first, std::span<const Setting> changes,
                 const std::function<std::unique_ptr<models::Model>()>& make_model) {
  if (!first.has_state) fail<FileError>("step {} of rank {} holds no state to start from", first.step, first.rank);
  auto job = recorded_job(first, changes);
  const auto reason = job.training.device == "cuda" ? rng::cuda_unavailable_reason() : "";
  if (!reason.empty())
    fail<BadInput>("step {} of rank {} cannot be replayed on a GPU here, use --device cpu: {}", first.step, first.rank,
                   reason);
  require_state_fits(first, job, make_model);
  return job;
}

/// Replays of one run go on from step to step.
void require_same_run(const replay::StepRecording& recording, const std::string& job, int rank) {
  if (recording.rank != rank)
    fail<FileError>("step {} is of rank {}, not of rank {}", recording.step, recording.rank, rank);
  if (recording.job != job)
    fail<FileError>("step {} of rank {} is of another job than the step that the replay began with", recording.step,
                    rank);
}

/// Where the state before a step is another than was recorded.
std::optional<replay::Deviation> state_deviation(const replay::StepRecording& recording, const TrainingState& state) {
  if (!recording.has_state) return std::nullopt;
  const auto now = local_state(state, 0);
  for (const auto& tensor : recording.state) {
    const auto found = std::find_if(now.begin(), now.end(), [&](const auto& one) { return one.name == tensor.name; });
    if (found != now.end() && *found == tensor) continue;
    return replay::Deviation{fmt::format("{} of the state before the step differs", tensor.name),
                             fmt::format("step {}, before its first op", recording.step),
                             "",
                             digest(tensor.bytes).text(),
                             found == now.end() ? "nothing" : digest(found->bytes).text(),
                             ""};
  }
  if (now.size() == recording.state.size()) return std::nullopt;
  return replay::Deviation{"the state before the step has other tensors",
                           fmt::format("step {}, before its first op", recording.step),
                           "",
                           fmt::format("{} tensors", recording.state.size()),
                           fmt::format("{} tensors", now.size()),
                           ""};
}

/// The first line: LibTorch adds a stack trace.
std::string line_of(const std::exception& error) {
  const std::string what = error.what();
  return what.substr(0, what.find('\n'));
}

c10::DeviceType device_of(const Job& job) { return job.training.device == "cuda" ? c10::kCUDA : c10::kCPU; }

}  // namespace

ReplayedRun::ReplayedRun(const replay::StepRecording& first, std::span<const Setting> changes,
                         std::function<std::unique_ptr<models::Model>()> make_model)
    : job_(replayed_job(first, changes, make_model)),
      recorded_job_(first.job),
      rank_(first.rank),
      first_step_(first.step),
      player_(std::make_shared<replay::Player>(device_of(job_))),
      run_(job_, options_for(job_, first.rank, player_, std::move(make_model))) {
  load_local_state(first.state, run_.state(), 0);
}

/// Runs the step as far as it goes; what ends it is told, and noted where the recording goes on.
void ReplayedRun::play(const replay::StepRecording& recording, const TokenBatch& batch, ReplayOutcome& outcome) {
  const ObserverScope scope(run_.world().observers(), *player_);
  try {
    run_.step(recording.step, batch, scalar_of(recording, "learning_rate"));
    player_->ended("");
  } catch (const replay::Player::StoppedThere&) {
    outcome.stopped_there = true;
    outcome.op_there = player_->op_there();
    outcome.tensors_there = player_->tensors_there();
  } catch (const std::exception& error) {  // of LibTorch too: a crafted batch or state may be the cause
    outcome.stopped_by = line_of(error);
    player_->ended(outcome.stopped_by);
  }
}

ReplayOutcome ReplayedRun::replay(const replay::StepRecording& recording, const std::string& until) {
  require_payloads(recording);
  require_same_run(recording, recorded_job_, rank_);
  if (next_sample_) require_sample(recording, *next_sample_);
  const auto batch = batch_of(recording, run_.model().vocabulary());
  ReplayOutcome outcome;
  outcome.step = recording.step;
  if (!recording.complete)
    outcome.ended_early = recording.reason.empty() ? "the recording does not say why" : recording.reason;
  outcome.other_machine = machine_differences(recording.machine, job_.training.device);
  const bool rounds = rounds_otherwise(job_, outcome.other_machine);
  if (!rounds && recording.step != first_step_) outcome.first_difference = state_deviation(recording, run_.state());
  next_sample_ = recording.next_sample;
  player_->load(recording, until);
  ScalarListener scalars(recording, job_);
  run_.set_listener(&scalars);
  play(recording, batch, outcome);
  run_.set_listener(nullptr);
  conclude(recording, scalars.comparison, rounds, outcome);
  return outcome;
}

void ReplayedRun::conclude(const replay::StepRecording& recording, const ScalarComparison& scalars, bool rounds,
                           ReplayOutcome& outcome) const {
  outcome.ops = player_->ops();
  outcome.collectives = player_->collectives();
  outcome.differing_results = player_->differing_results();
  if (!outcome.first_difference) outcome.first_difference = player_->first_deviation();
  outcome.differing_scalars = scalars.different;
  const bool is_same = !outcome.first_difference && scalars.agrees();
  if (is_same && player_->results() == 0)
    fail<FileError>("step {} of rank {} holds no result of an op: nothing can be compared", recording.step, rank_);
  outcome.other_numerics = numerics_difference(recording, job_, !is_same);
  const bool is_close = is_same || (player_->is_same_program() && are_within_bound(job_, scalars.relative));
  outcome.verdict = is_same && !rounds   ? ReplayVerdict::kIdentical
                    : is_close && rounds ? ReplayVerdict::kWithinBound
                                         : ReplayVerdict::kDiffers;
}

}  // namespace lockstep::trainer

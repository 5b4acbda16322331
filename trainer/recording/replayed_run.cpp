#include "trainer/recording/replayed_run.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/error.h"
#include "rng/cuda_fill.h"
#include "trainer/job/job_file.h"
#include "trainer/job/mesh_degrees.h"
#include "trainer/job/offered_device.h"
#include "trainer/recording/local_state.h"
#include "trainer/recording/machine_facts.h"
#include "trainer/recording/recorded_step.h"

namespace lockstep::trainer {
namespace {

/// Compares the numbers of a step with those that were recorded.
class ScalarComparison final : public StepListener {
 public:
  explicit ScalarComparison(const replay::StepRecording& recording) : recording_(recording) {}
  void begin_step(int64_t, const TokenBatch&, double, const TrainingState&) override {}
  void end_step(std::span<const StepScalar> scalars) override {
    for (const auto& recorded : recording_.scalars)
      for (const auto& scalar : scalars)
        if (scalar.name == recorded.name && std::bit_cast<uint64_t>(scalar.value) != recorded.bits)
          note(recorded, scalar.value);
  }
  std::vector<std::string> different;
  std::vector<double> relative;  ///< differences, of the same

 private:
  void note(const replay::RecordedScalar& recorded, double now) {
    const auto then = std::bit_cast<double>(recorded.bits);
    different.push_back(fmt::format("{}: recorded {} ({:#018x}), now {} ({:#018x})", recorded.name, then, recorded.bits,
                                    now, std::bit_cast<uint64_t>(now)));
    relative.push_back(std::abs(now - then) / std::max(std::abs(now), std::abs(then)));
  }

  const replay::StepRecording& recording_;
};

TrainingRun::Options options_for(const Job& job, int rank, std::shared_ptr<Transport> transport,
                                 std::function<std::unique_ptr<models::Model>()> make_model) {
  TrainingRun::Options options;
  options.mesh = mesh_of(job);
  options.local_ranks = {rank};
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

void require_payloads(const replay::StepRecording& recording) {
  for (const auto& piece : recording.pieces)
    if (piece.offset == replay::kNoPayload)
      fail<BadInput>(
          "step {} of rank {} was recorded without payloads (record.payload = \"none\"): it cannot be replayed",
          recording.step, recording.rank);
}

Job replayed_job(const replay::StepRecording& first, std::span<const Setting> changes) {
  auto job = parse_job(first.job, "the recorded job", changes);
  require_device_offered(job);
  const auto reason = job.training.device == "cuda" ? rng::cuda_unavailable_reason() : "";
  if (!reason.empty())
    fail<BadInput>("step {} of rank {} cannot be replayed on a GPU here, use --device cpu: {}", first.step, first.rank,
                   reason);
  return job;
}

c10::DeviceType device_of(const Job& job) { return job.training.device == "cuda" ? c10::kCUDA : c10::kCPU; }

}  // namespace

ReplayedRun::ReplayedRun(const replay::StepRecording& first, std::span<const Setting> changes,
                         std::function<std::unique_ptr<models::Model>()> make_model)
    : job_(replayed_job(first, changes)),
      player_(std::make_shared<replay::Player>(device_of(job_))),
      run_(job_, options_for(job_, first.rank, player_, std::move(make_model))) {
  if (!first.has_state) fail<FileError>("step {} of rank {} holds no state to start from", first.step, first.rank);
  load_local_state(first.state, run_.state(), 0);
}

ReplayOutcome ReplayedRun::replay(const replay::StepRecording& recording, const std::string& until) {
  require_payloads(recording);
  player_->load(recording, until);
  ScalarComparison scalars(recording);
  const ObserverScope scope(run_.world().observers(), *player_);
  run_.set_listener(&scalars);
  ReplayOutcome outcome;
  outcome.step = recording.step;
  outcome.other_machine = machine_differences(recording.machine, job_.training.device);
  try {
    run_.step(recording.step, batch_of(recording), scalar_of(recording, "learning_rate"));
    player_->ended("");
  } catch (const replay::Player::StoppedThere&) {
    outcome.stopped_there = true;
    outcome.tensors_there = player_->tensors_there();
  } catch (const Error& error) {
    outcome.stopped_by = error.what();
    player_->ended(outcome.stopped_by);
  }
  run_.set_listener(nullptr);
  outcome.ops = player_->ops();
  outcome.collectives = player_->collectives();
  outcome.differing_results = player_->differing_results();
  outcome.first_difference = player_->first_deviation();
  outcome.differing_scalars = std::move(scalars.different);
  const bool is_same = !outcome.first_difference && outcome.differing_scalars.empty();
  outcome.other_numerics = numerics_difference(recording, job_, !is_same);
  const bool rounds = rounds_otherwise(job_, outcome.other_machine);
  const bool is_close = is_same || (player_->is_same_program() && are_within_bound(job_, scalars.relative));
  outcome.verdict = is_same && !rounds   ? ReplayVerdict::kIdentical
                    : is_close && rounds ? ReplayVerdict::kWithinBound
                                         : ReplayVerdict::kDiffers;
  return outcome;
}

}  // namespace lockstep::trainer

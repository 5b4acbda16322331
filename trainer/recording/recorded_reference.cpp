#include "trainer/recording/recorded_reference.h"

#include <memory>

#include "core/error.h"
#include "replay/play/player.h"
#include "trainer/job/job_file.h"
#include "trainer/recording/local_state.h"
#include "trainer/recording/machine_facts.h"
#include "trainer/recording/recorded_step.h"
#include "trainer/verify/finding.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

using Recordings = std::vector<replay::StepRecording>;

Recordings read_all(const replay::RecordingFolder& folder, int64_t step) {
  Recordings all;
  const auto ranks = folder.ranks();
  for (const int rank : ranks) all.push_back(folder.read(rank, step));
  if (all.empty() || static_cast<size_t>(all.front().world) != all.size())
    fail<BadInput>("a comparison with one device needs the recordings of all {} ranks; there are {}",
                   all.empty() ? 0 : all.front().world, all.size());
  return all;
}

/// Compares what every rank computes with its recording, each time the step begins anew.
class AllRanksCheck final : public StepListener {
 public:
  explicit AllRanksCheck(World& world) : world_(world) {}

  void load(const Recordings& recordings) { recordings_ = &recordings; }
  void begin_step(int64_t, const TokenBatch&, double, const TrainingState&) override {
    scopes_.clear();
    players_.resize(recordings_->size());
    for (size_t i = 0; i < players_.size(); ++i) {
      players_[i] = std::make_unique<replay::Player>();
      players_[i]->load((*recordings_)[i]);
      scopes_.push_back(std::make_unique<ObserverScope>(world_.observers(), *players_[i]));
    }
  }
  void end_step(std::span<const StepScalar>) override {
    scopes_.clear();
    for (auto& player : players_) player->ended("");
  }

  const std::vector<std::unique_ptr<replay::Player>>& players() const { return players_; }

 private:
  World& world_;
  const Recordings* recordings_ = nullptr;
  std::vector<std::unique_ptr<replay::Player>> players_;
  std::vector<std::unique_ptr<ObserverScope>> scopes_;
};

TrainingRun::Options options_for(const Job& job) {
  TrainingRun::Options options;
  options.mesh = mesh_of(job);
  options.as_messages = true;
  options.keep_gradients = true;
  return options;
}

StepCheck check_step(const Job& job, TrainingRun& run, const replay::StepRecording& recording) {
  const auto options = options_for(job);
  auto verifier = StepVerifier::compares_bits(job) ? StepVerifier(job, options, run) : StepVerifier(job, options);
  verifier.load(run.state());
  return verifier.check(recording.step, batch_of(recording), scalar_of(recording, "learning_rate"));
}

}  // namespace

ReferenceVerdict compare_with_reference(const replay::RecordingFolder& folder, int64_t step,
                                        std::span<const Setting> changes) {
  int64_t now = folder.first_with_state(folder.ranks().front(), step);
  auto recordings = read_all(folder, now);
  const auto job = parse_job(recordings[0].job, "the recorded job", changes);
  TrainingRun run(job, options_for(job));
  for (size_t i = 0; i < recordings.size(); ++i) load_local_state(recordings[i].state, run.state(), i);
  for (; now < step; recordings = read_all(folder, ++now))
    run.step(now, batch_of(recordings[0]), scalar_of(recordings[0], "learning_rate"));
  AllRanksCheck as_recorded(run.world());
  as_recorded.load(recordings);
  run.set_listener(&as_recorded);
  const auto check = check_step(job, run, recordings[0]);
  run.set_listener(nullptr);
  ReferenceVerdict verdict;
  verdict.step = step;
  verdict.agrees = check.comparison.agrees();
  if (!verdict.agrees) verdict.finding = finding_of(check);
  for (size_t i = 0; i < as_recorded.players().size(); ++i) {
    const auto& player = *as_recorded.players()[i];
    verdict.ops = player.ops();
    if (!player.first_deviation() || !verdict.is_as_recorded) continue;
    verdict.is_as_recorded = false;
    verdict.deviation = fmt::format("rank {}\n{}", recordings[i].rank, player.first_deviation()->text());
  }
  verdict.other_numerics = numerics_difference(recordings[0], job, !verdict.is_as_recorded);
  return verdict;
}

}  // namespace lockstep::trainer

#include "trainer/recording/recorded_reference.h"

#include <bit>
#include <memory>

#include "core/error.h"
#include "replay/play/player.h"
#include "trainer/recording/local_state.h"
#include "trainer/recording/machine_facts.h"
#include "trainer/recording/recorded_job.h"
#include "trainer/recording/recorded_step.h"
#include "trainer/recording/scalar_comparison.h"
#include "trainer/state/state_digest.h"
#include "trainer/verify/finding.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

using Recordings = std::vector<replay::StepRecording>;

uint64_t learning_rate_bits(const replay::StepRecording& recording) {
  return std::bit_cast<uint64_t>(scalar_of(recording, "learning_rate"));
}

/// What all ranks are given is the same on all of them.
void require_alike(const replay::StepRecording& first, const replay::StepRecording& other) {
  const auto require = [&](bool is_same, const char* what) {
    if (!is_same)
      fail<FileError>("the recordings of step {} do not belong together: rank {} has another {} than rank {}",
                      first.step, other.rank, what, first.rank);
  };
  require(other.job == first.job, "job");
  require(other.rows == first.rows && other.seq_len == first.seq_len && other.tokens == first.tokens &&
              other.labels == first.labels && other.positions == first.positions &&
              other.first_sample == first.first_sample,
          "batch");
  require(learning_rate_bits(other) == learning_rate_bits(first), "learning_rate");
  require(other.world == first.world, "number of ranks");
  require(other.state_digest == first.state_digest, "state_digest");
  require_payloads(other);
}

Recordings read_all(const replay::RecordingFolder& folder, int64_t step) {
  Recordings all;
  const auto ranks = folder.ranks();
  for (const int rank : ranks) all.push_back(folder.read(rank, step));
  if (all.empty() || static_cast<size_t>(all.front().world) != all.size())
    fail<BadInput>("a comparison with one device needs the recordings of all {} ranks; there are {}",
                   all.empty() ? 0 : all.front().world, all.size());
  for (const auto& one : all) require_alike(all.front(), one);
  return all;
}

/// Compares what every rank computes with its recording, each time the step begins anew.
class AllRanksCheck final : public StepListener {
 public:
  AllRanksCheck(World& world, const Job& job) : world_(world), schedule_(job) {}

  void load(const Recordings& recordings) { recordings_ = &recordings; }
  void begin_step(int64_t, const TokenBatch&, double, const TrainingState&) override {
    scopes_.clear();
    players_.resize(recordings_->size());
    scalars_.assign(recordings_->size(), {});
    for (size_t i = 0; i < players_.size(); ++i) {
      players_[i] = std::make_unique<replay::Player>();
      players_[i]->load((*recordings_)[i]);
      scopes_.push_back(std::make_unique<ObserverScope>(world_.observers(), *players_[i]));
    }
  }
  void end_step(std::span<const StepScalar> scalars) override {
    scopes_.clear();
    for (auto& player : players_) player->ended("");
    const auto all = with_next_rate(scalars, schedule_, recordings_->front().step);
    for (size_t i = 0; i < players_.size(); ++i) scalars_[i] = compare_scalars((*recordings_)[i], all);
  }

  /// Of the first rank that left its recording, with its number; empty if none did.
  std::string first_deviation() const {
    for (size_t i = 0; i < players_.size(); ++i)
      if (const auto text = deviation(i); !text.empty())
        return fmt::format("rank {}\n{}", (*recordings_)[i].rank, text);
    return "";
  }

  size_t ops() const { return players_.empty() ? 0 : players_.back()->ops(); }

 private:
  /// Where a rank left its recording; empty if it did not.
  std::string deviation(size_t i) const {
    if (const auto& first = players_[i]->first_deviation()) return first->text();
    return scalars_[i].agrees() ? "" : "  " + scalars_[i].different.front();
  }

  World& world_;
  const LearningRateSchedule schedule_;
  const Recordings* recordings_ = nullptr;
  std::vector<std::unique_ptr<replay::Player>> players_;
  std::vector<ScalarComparison> scalars_;
  std::vector<std::unique_ptr<ObserverScope>> scopes_;
};

TrainingRun::Options options_for(const Job& job) {
  TrainingRun::Options options;
  options.mesh = mesh_of(job);
  options.as_messages = true;
  options.keep_gradients = true;
  options.loads_weights = false;
  return options;
}

StepCheck check_step(const Job& job, TrainingRun& run, const replay::StepRecording& recording) {
  const auto options = options_for(job);
  auto verifier = StepVerifier::compares_bits(job) ? StepVerifier(job, options, run) : StepVerifier(job, options);
  verifier.load(run.state(), recording.step);
  return verifier.check(recording.step, batch_of(recording, run.model().vocabulary()),
                        scalar_of(recording, "learning_rate"));
}

/// Whether the state after the step is another than was recorded, where it was.
std::string state_deviation(const replay::StepRecording& recording, const TrainingRun& run) {
  if (recording.state_digest.empty()) return "";
  const auto now = state_digest(run.state()).text();
  if (now == recording.state_digest) return "";
  return replay::Deviation{"the state after the step differs",
                           fmt::format("step {}, after its last op", recording.step),
                           "",
                           recording.state_digest,
                           now,
                           ""}
      .text();
}

}  // namespace

ReferenceVerdict compare_with_reference(const replay::RecordingFolder& folder, int64_t step,
                                        std::span<const Setting> changes) {
  int64_t now = folder.first_with_state(folder.ranks().front(), step);
  auto recordings = read_all(folder, now);
  const auto job = recorded_job(recordings[0], changes);
  for (const auto& recording : recordings) require_state_fits(recording, job);
  TrainingRun run(job, options_for(job));
  for (size_t i = 0; i < recordings.size(); ++i) load_local_state(recordings[i].state, run.state(), i);
  while (now < step) {
    run.step(now, batch_of(recordings[0], run.model().vocabulary()), scalar_of(recordings[0], "learning_rate"));
    const auto due = recordings[0].next_sample;
    recordings = read_all(folder, ++now);
    require_sample(recordings[0], due);
  }
  AllRanksCheck as_recorded(run.world(), job);
  as_recorded.load(recordings);
  run.set_listener(&as_recorded);
  const auto check = check_step(job, run, recordings[0]);
  run.set_listener(nullptr);
  ReferenceVerdict verdict;
  verdict.step = step;
  verdict.agrees = check.agrees();
  if (!verdict.agrees) verdict.finding = finding_of(check);
  verdict.ops = as_recorded.ops();
  verdict.deviation = as_recorded.first_deviation();
  if (verdict.deviation.empty() && StepVerifier::compares_bits(job))
    verdict.deviation = state_deviation(recordings[0], run);
  verdict.is_as_recorded = verdict.deviation.empty();
  verdict.other_numerics = numerics_difference(recordings[0], job, !verdict.is_as_recorded);
  return verdict;
}

}  // namespace lockstep::trainer

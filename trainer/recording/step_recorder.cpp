#include "trainer/recording/step_recorder.h"

#include <bit>

#include "replay/format/datasets.h"
#include "trainer/job/job_file.h"
#include "trainer/recording/local_state.h"
#include "trainer/recording/machine_facts.h"
#include "trainer/recording/scalar_comparison.h"

namespace lockstep::trainer {
namespace {

/// How much may wait for the disk; then training waits too.
constexpr uint64_t kMostWaitingBytes = uint64_t{2} << 30;

std::vector<int32_t> narrowed(const std::vector<int64_t>& ids) { return {ids.begin(), ids.end()}; }

}  // namespace

StepRecorder::StepRecorder(const Job& job, TrainingRun& run)
    : job_(job),
      run_(run),
      schedule_(job),
      mode_(replay::parse_payload_mode(job.record.payload)),
      recorder_(run.world(), mode_.is_kept),
      store_(job.record.folder, mode_, kMostWaitingBytes) {
  common_.job = to_toml(job);
  common_.machine = machine_facts(job.training.device);
  for (const int rank : run.world().local_ranks()) store_.open(rank, run.world().rank_count(), common_.job);
  run_.set_listener(this);
}

StepRecorder::~StepRecorder() { run_.set_listener(nullptr); }

bool StepRecorder::needs_state(int64_t step) const {
  if (!mode_.is_kept) return false;
  const int64_t period = mode_.ring > 0 ? std::min(job_.record.state_every, mode_.ring) : job_.record.state_every;
  return last_recorded_ == 0 || last_recorded_ != step - 1 || since_state_ >= period;
}

void StepRecorder::begin_step(int64_t step, const TokenBatch& batch, double learning_rate, const TrainingState& state) {
  watching_.reset();
  is_open_ = is_due(step);
  has_ended_ = false;
  if (!is_open_) return;
  common_.step = step;
  common_.first_sample = batch.first_sample;
  common_.rows = batch.rows;
  common_.next_sample = batch.first_sample + batch.rows;
  common_.seq_len = batch.seq_len;
  common_.tokens = narrowed(batch.tokens);
  common_.labels = narrowed(batch.labels);
  common_.positions = narrowed(batch.positions);
  common_.scalars = {{"learning_rate", std::bit_cast<uint64_t>(learning_rate)}};
  common_.state_digest.clear();
  common_.has_state = needs_state(step);
  states_.clear();
  if (common_.has_state) keep_state(state);
  recorder_.begin();
  watching_.emplace(run_.world().observers(), recorder_);
}

void StepRecorder::keep_state(const TrainingState& state) {
  for (size_t i = 0; i < run_.mesh().local_count(); ++i) states_.push_back(local_state(state, i));
}

void StepRecorder::end_step(std::span<const StepScalar> scalars) {
  watching_.reset();
  if (!is_open_) return;
  common_.scalars.clear();
  for (const auto& scalar : with_next_rate(scalars, schedule_, common_.step))
    common_.scalars.push_back({scalar.name, std::bit_cast<uint64_t>(scalar.value)});
  has_ended_ = true;
}

std::vector<replay::StepRecording> StepRecorder::finished(const std::string& reason) {
  common_.complete = has_ended_;
  common_.reason = has_ended_ ? "" : reason.substr(0, replay::kMaxText);
  auto recordings = recorder_.end(common_);
  for (size_t i = 0; i < states_.size(); ++i) recordings[i].state = std::move(states_[i]);
  return recordings;
}

void StepRecorder::close_step(const std::string& reason) {
  watching_.reset();
  if (!std::exchange(is_open_, false)) return;
  for (auto& unneeded : store_.add(finished(reason))) recorder_.reuse(std::move(unneeded.payload));
  last_recorded_ = common_.step;
  since_state_ = common_.has_state ? 1 : since_state_ + 1;
}

void StepRecorder::give_up(const std::string& reason) {
  close_step(reason);
  store_.write_out();
  store_.finish();
}

}  // namespace lockstep::trainer

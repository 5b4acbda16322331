#include "trainer/loop/run_verification.h"

#include "core/error.h"
#include "trainer/data/dataset.h"
#include "trainer/identity/run_start.h"
#include "trainer/launch/together.h"

namespace lockstep::trainer {

TrainingRun::Options run_options(const Job& job, const Processes& processes) {
  TrainingRun::Options options;
  options.mesh = mesh_of(job);
  options.transport = processes.transport;
  if (processes.transport) options.local_ranks = {processes.rank};
  options.as_messages = !job.record.folder.empty();
  options.loads_weights = !step_to_resume(job);
  options.keep_gradients = job.verify.enable && job.verify.has(kStepMode);
  return options;
}

RunVerification::RunVerification(const Job& job, const Processes& processes, TrainingRun& run) : job_(job), run_(run) {
  if (!job.verify.enable) return;
  const auto options = run_options(job, processes);
  if (job.verify.has(kStepMode))
    steps_ = StepVerifier::compares_bits(job) ? std::make_unique<StepVerifier>(job, options, run)
                                              : std::make_unique<StepVerifier>(job, options);
  const bool is_whole = steps_ && !compares_bits();
  if (asks_for_ops(job))
    ops_.emplace(run, job.verify.sample, is_whole ? OpCheck::Updates::kAll : OpCheck::Updates::kSampled);
  if (is_whole) whole_ = std::make_unique<NativeRunCheck>(job, options, *steps_, run);
}

void RunVerification::begin(int64_t first, int64_t sample, bool is_resumed, const RunCheckpoints& checkpoints) {
  first_ = first;
  if (!steps_) return;
  if (is_resumed)
    agreed(run_.mesh(), [&] { steps_->reload([&](TrainingState& state) { checkpoints.load_into(state); }, first); });
  expect_batches(first, checkpoints.sample_after(first - 1).value_or(sample));
}

void RunVerification::expect_batches(int64_t first, int64_t sample) {
  std::shared_ptr<Dataset> data;
  agreed(run_.mesh(), [&] { data = make_dataset(job_, run_.model().vocabulary()); });
  steps_->expect_batches([data, first, sample, rows = job_.training.global_batch_size](int64_t step) {
    return data->batch(sample + (step - first) * rows, rows);
  });
  steps_->expect_rates([schedule = LearningRateSchedule(job_)](int64_t step) { return schedule.learning_rate(step); });
}

RunVerification::Made RunVerification::check(int64_t step, const TokenBatch& batch, double rate,
                                             const MakeStep& make_step) {
  std::optional<OpVerifier::Watch> watched;
  if (ops_) watched.emplace(*ops_);
  StepCheck check;
  if (steps_) check = compared(step, batch, rate, make_step);
  Made made;
  if (compares_bits())
    made = {check.result, check.seconds};
  else if (check.agrees())
    made = make_step();
  watched.reset();
  if (ops_) ops_->judge(check);
  if (whole_ && check.agrees()) judge_whole(step, batch, rate, made.result, check);
  made.result.gradients.clear(), made.result.token_losses.clear();
  made.check = std::move(check);
  return made;
}

StepCheck RunVerification::compared(int64_t step, const TokenBatch& batch, double rate, const MakeStep& make_step) {
  if (!compares_bits())
    if (auto check = check_native_start(step); !check.agrees()) return check;
  try {
    return steps_->check(step, batch, rate);
  } catch (const Inconsistency&) {
    make_step();  // not finite here either: names the op
    throw;
  }
}

void RunVerification::judge_whole(int64_t step, const TokenBatch& batch, double rate, const StepResult& result,
                                  StepCheck& check) {
  whole_->judge(step, batch, rate, result, *ops_, check);
  if (!check.agrees()) return;
  left_.set(run_.state());
  left_by_ = step;
}

/// The float64 pair goes on from what the run left in its own type; the first state is the reference's own.
StepCheck RunVerification::check_native_start(int64_t step) {
  auto check = step == first_ ? steps_->check_start(step, run_.state(), run_.mesh()) : check_unchanged(step - 1);
  if (check.agrees()) whole_->begin(step);
  return check;
}

/// Of a state that the step after it, a save or the end finds; nothing is known of what an unchecked step left.
StepCheck RunVerification::check_unchanged(int64_t step) const {
  StepCheck check;
  if (left_by_ != step) return check;
  std::optional<Found> mine;
  agreed(run_.mesh(), [&] {
    if (const auto changed = left_.first_change(run_.state()); !changed.empty())
      mine = Found{0, fmt::format("{} was written after step {}", changed, step)};
  });
  const auto found = earliest(run_.mesh(), mine);
  if (!found) return check;
  check.difference = found->text;
  check.blame = Blame{.kind = "start",
                      .id = fmt::format("none: step {} has not begun", step + 1),
                      .worst = found->text,
                      .before = "a write between two steps; what the step before it left was within its bounds"};
  return check;
}

StepCheck RunVerification::check_left(int64_t step) {
  if (!steps_) return {};
  return compares_bits() ? steps_->check_start(step + 1, run_.state(), run_.mesh()) : check_unchanged(step);
}

}  // namespace lockstep::trainer

#include "trainer/verify/step_verifier.h"

#include <chrono>

#include "consistency/blame_observer.h"
#include "consistency/place_on_mesh.h"
#include "core/error.h"
#include "replay/op_case/case_capture.h"
#include "runtime/context/observer.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/together.h"
#include "trainer/verify/agreed_blame.h"
#include "trainer/verify/batch_check.h"
#include "trainer/verify/blame_reference.h"
#include "trainer/verify/place_of_errors.h"

namespace lockstep::trainer {
namespace {

bool compares_bits(const Job& job) { return StepVerifier::compares_bits(job); }

TrainingRun::Options candidate_options(const Job& job, TrainingRun::Options options) {
  options.domain = compares_bits(job) ? Domain::kDeclared : Domain::kFloat64;
  options.keep_gradients = true;
  return options;
}

TrainingRun::Options reference_options(const Job& job, TrainingRun::Options options) {
  options.mesh = {};
  options.rules = nullptr;
  options.transport = nullptr;
  options.local_ranks = {};
  return candidate_options(job, std::move(options));
}

/// With canonical numerics the number of microbatches must not matter: one device has its own. But what the mesh does
/// at once, with all of its ranks in this process, has room on one device as well, and is quickest at once.
Job reference_job(const Job& job, const TrainingRun::Options& options) {
  const bool is_at_once = options.local_ranks.empty() && derive_batching(job, options.mesh).accumulation_steps == 1;
  return compares_bits(job) && !is_at_once ? job : with_microbatches_of(job, options.mesh, {});
}

/// What this process sees of a step that is wrong before it began, or without anything to blame.
void add_first(Blame& blame, const Comparison& comparison, const Mesh& mesh) {
  if (comparison.agrees()) return;
  const auto& first = comparison.beyond[0];
  blame.module = first.name, blame.pattern = first.pattern;
  blame.ranks = first.ranks.empty() ? mesh.local_ranks() : first.ranks;
  if (mesh.local_count() == static_cast<size_t>(mesh.rank_count())) place_on_mesh(blame, mesh, {});
}

/// Loss and gradients agree.
bool is_of_update(const std::string& difference) {
  return difference.starts_with("parameter of ") || difference.starts_with("optimizer state of ");
}

StepCheck start_check(int64_t step, const StepRecord& expected, const StepRecord& actual, const Mesh& mesh) {
  StepCheck check;
  check.comparison = compare(expected, actual, kBits);
  for (auto& difference : check.comparison.beyond) difference.kind += " before the step";
  check.difference = agreed_difference(mesh, check.comparison);
  if (check.agrees()) return check;
  Blame blame{.kind = "start",
              .id = fmt::format("none: step {} has not begun", step),
              .worst = check.difference,
              .before = "initial values, what was loaded, or a write between two steps"};
  add_first(blame, check.comparison, mesh);
  check.blame = agreed_blame(mesh, check.comparison.agrees() ? std::nullopt : std::optional(blame))->blame;
  return check;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

StepVerifier::StepVerifier(const Job& job, TrainingRun::Options options)
    : job_(job),
      options_(options),
      bits_(compares_bits(job)),
      reference_(reference_job(job, options), reference_options(job, options)),
      own_candidate_(std::make_unique<TrainingRun>(job, candidate_options(job, options))),
      candidate_(own_candidate_.get()) {}

StepVerifier::StepVerifier(const Job& job, const TrainingRun::Options& options, TrainingRun& run)
    : job_(job),
      options_(options),
      bits_(compares_bits(job)),
      reference_(reference_job(job, options), reference_options(job, options)),
      candidate_(&run) {
  LOCKSTEP_CHECK(bits_);
}

void StepVerifier::load(const TrainingState& state, int64_t next_step) {
  copy_state(state, reference_.state());
  if (own_candidate_) copy_state(state, candidate_->state());
  begin_at(next_step);
}

void StepVerifier::reload(const std::function<void(TrainingState&)>& load, int64_t next_step) {
  load(reference_.state());
  begin_at(next_step);
}

void StepVerifier::begin_at(int64_t next_step) {
  start_.forget();
  next_step_ = next_step;
  is_first_ = true;
}

StepCheck StepVerifier::check_start(int64_t step, const TrainingState& state, const Mesh& mesh) {
  return start_check(step, record_of(step, {}, reference_.state()), record_of(step, {}, state), mesh);
}

/// Of a step that follows a checked one. What was written to the optimizer's state since then shows after the step.
StepCheck StepVerifier::check_parameters(int64_t step) {
  auto expected = record_of(step, {}, reference_.state()), actual = record_of(step, {}, candidate_->state());
  expected.optimizer.clear(), actual.optimizer.clear();
  return start_check(step, expected, actual, candidate_->mesh());
}

StepCheck StepVerifier::check_batch(int64_t step, const TokenBatch& batch) {
  StepCheck check;
  if (!batches_) return check;
  agreed(candidate_->mesh(), [&] { check.comparison = compare_batches(batches_(step), batch); });
  check.difference = agreed_difference(candidate_->mesh(), check.comparison);
  if (!check.agrees())
    check.blame = Blame{.kind = "data",
                        .id = fmt::format("none: step {} has not begun", step),
                        .worst = check.difference,
                        .before = "the state before the step agrees: the step was given other samples"};
  return check;
}

/// One device takes the rate that the run was given: a wrong one shows here alone.
StepCheck StepVerifier::check_rate(int64_t step, double learning_rate) {
  StepCheck check;
  if (!rates_) return check;
  const StepRecord expected{.step = step, .scalars = {{"learning_rate", rates_(step)}}};
  const StepRecord given{.step = step, .scalars = {{"learning_rate", learning_rate}}};
  check.comparison = compare(expected, given, kBits);
  for (auto& difference : check.comparison.beyond) difference.reference_name = "the job's schedule";
  check.difference = agreed_difference(candidate_->mesh(), check.comparison);
  if (!check.agrees())
    check.blame = Blame{.kind = "number",
                        .id = fmt::format("none: step {} has not begun", step),
                        .worst = check.difference,
                        .before = "state and samples before the step agree: the step was given another learning rate"};
  return check;
}

StepCheck StepVerifier::check(int64_t step, const TokenBatch& batch, double learning_rate) {
  return with_place(options_.mesh.text(), step, [&] { return checked(step, batch, learning_rate); });
}

StepCheck StepVerifier::checked(int64_t step, const TokenBatch& batch, double learning_rate) {
  StepCheck check;
  if (next_step_ != step)
    load(candidate_->state(), step);  // nothing vouches for what steps without a check have left
  else if (bits_)
    check = is_first_ ? check_start(step, candidate_->state(), candidate_->mesh()) : check_parameters(step);
  if (check.agrees()) check = check_batch(step, batch);
  if (check.agrees()) check = check_rate(step, learning_rate);
  if (!check.agrees()) return check;
  start_.note(reference_.state(), step, batch, learning_rate);
  run_both(step, batch, learning_rate, check);
  if (!check.agrees()) explain(step, batch, learning_rate, check);
  check.result.gradients.clear();  // their memory is the next step's
  if (bits_) reference_result_ = {};
  next_step_ = step + 1;
  is_first_ = false;
  return check;
}

Comparison StepVerifier::compared(int64_t step, const StepResult& reference, const StepResult& result) {
  return compare(record_of(step, reference, reference_.state()), record_of(step, result, candidate_->state()),
                 tolerance());
}

void StepVerifier::run_both(int64_t step, const TokenBatch& batch, double learning_rate, StepCheck& check) {
  const double before = now();
  agreed(candidate_->mesh(), [&] { reference_result_ = reference_.step(step, batch, learning_rate); });
  const double between = now();
  candidate_->world().traffic().clear();
  std::string ended;
  const auto result = try_step(step, batch, learning_rate, ended);
  check.seconds = now() - between;
  check.seconds_ratio = check.seconds / (between - before);
  check.bytes = candidate_->world().traffic().bytes();
  if (!result) {
    check.difference = fmt::format("{}; one device: loss {:.10g}, gradient norm {:.10g}", ended, reference_result_.loss,
                                   reference_result_.gradient_norm);
    return;
  }
  check.result = *result;
  check.reference_loss = reference_result_.loss;
  check.comparison = compared(step, reference_result_, check.result);
  check.difference = agreed_difference(candidate_->mesh(), check.comparison);
}

/// None where the step ends by a number that is not finite, on all ranks alike: `why`.
std::optional<StepResult> StepVerifier::try_step(int64_t step, const TokenBatch& batch, double learning_rate,
                                                 std::string& why) {
  try {
    return candidate_->step(step, batch, learning_rate);
  } catch (const Inconsistency& error) {
    why = error.what();
    return std::nullopt;
  }
}

std::optional<StepResult> StepVerifier::run_watched(int64_t step, const TokenBatch& batch, double learning_rate,
                                                    const TrainingState& start, Observer& observer) {
  copy_state(start, candidate_->state());
  const ObserverScope scope(candidate_->world().observers(), observer);
  std::string unused;
  return try_step(step, batch, learning_rate, unused);
}

OpTrace StepVerifier::trace_reference(int64_t step, const TokenBatch& batch, double learning_rate,
                                      const TrainingState& start) {
  OpTrace trace(tolerance());
  auto options = reference_options(job_, options_);
  options.mesh = blame_mesh(job_, options_.mesh);
  TrainingRun reference(with_microbatches_of(job_, options_.mesh, options.mesh), options);
  copy_state(start, reference.state());
  const ObserverScope scope(reference.world().observers(), trace);
  reference.step(step, batch, learning_rate);
  return trace;
}

void StepVerifier::restore_start(TrainingState& state) {
  TrainingRun start(reference_job(job_, options_), reference_options(job_, options_));
  start_.restore(start);
  copy_state(start.state(), state);
}

/// Nothing that was compared differs.
Blame StepVerifier::blame_of_none(const StepCheck& check, const BlameObserver& blamer, const TrainingState& start) {
  auto blame = blamer.blame_of_none();
  const auto& comparison = check.comparison;
  add_first(blame, comparison, candidate_->mesh());
  if (!comparison.agrees() && is_unchanged(comparison.beyond[0], start, candidate_->state()))
    blame.pattern = "old values: as before the step";
  // Where the mesh's loss is not finite, nothing was compared on any rank.
  const bool is_here = !comparison.agrees() || comparison.values == 0;
  const auto agreed = agreed_blame(candidate_->mesh(), is_here ? std::optional(blame) : std::nullopt);
  if (agreed) blame = agreed->blame;
  blame.worst = check.difference;
  if (blame.pattern.starts_with("old values:")) blame.worst += "; " + blame.pattern;
  return blame;
}

void StepVerifier::explain(int64_t step, const TokenBatch& batch, double learning_rate, StepCheck& check) {
  TrainingRun start(reference_job(job_, options_), reference_options(job_, options_));
  start_.restore(start);
  const auto trace = trace_reference(step, batch, learning_rate, start.state());
  BlameObserver blamer(trace, tolerance());
  const auto again = run_watched(step, batch, learning_rate, start.state(), blamer);
  const auto& mesh = candidate_->mesh();
  const bool comes_back = any_rank(mesh, !again || !compared(step, reference_result_, *again).agrees());
  const auto blamed = agreed_blame(mesh, blamer.blame());
  check.blame = blamed ? blamed->blame : blame_of_none(check, blamer, start.state());
  check.blame->limits = limits_of_blame(blame_mesh(job_, options_.mesh));
  check.blame->transient = !comes_back;
  if (!comes_back && is_of_update(check.difference))
    check.blame->before += "; a write to the optimizer's state before the step, which is not compared, looks the same";
  if (!blamed) return;
  if (blamed->blame.is_of_move()) check.op_case = case_of_move(mesh, *blamed, blamer.blame(), blamer.moved());
  if (blamed->blame.kind != "op") return;
  const auto& expected = trace.find(check.blame->id)->computed;
  if (expected.empty()) return;  // a view: a case would hold nothing to compare
  replay::CaseCapture capture(check.blame->id);
  run_watched(step, batch, learning_rate, start.state(), capture);
  check.op_case = joined_case(mesh, *blamed, capture.take(check.blame->text(), expected));
}

}  // namespace lockstep::trainer

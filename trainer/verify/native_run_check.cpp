#include "trainer/verify/native_run_check.h"

#include "consistency/ops/step_rounding.h"
#include "runtime/context/observer.h"
#include "trainer/launch/together.h"
#include "trainer/verify/agreed_blame.h"
#include "trainer/verify/blame_reference.h"
#include "trainer/verify/op_verifier.h"
#include "trainer/verify/step_record.h"

namespace lockstep::trainer {
namespace {

TrainingRun::Options on_one_device(TrainingRun::Options options) {
  options.mesh = {};
  options.rules = nullptr;
  options.transport = nullptr;
  options.local_ranks = {};
  options.domain = Domain::kFloat64;
  options.keep_gradients = true;
  return options;
}

/// Where replicas have microbatches of their own, one of one device holds other samples: losses are of other tokens.
StepRecord record_of_run(int64_t step, const StepResult& result, const TrainingRun& run) {
  auto record = record_of(step, result, run.state());
  if (run.batching().replicas > 1 && run.batching().accumulation_steps > 1) record.token_losses.clear();
  return record;
}

/// Where every op does what its bound allows it.
Blame blame_of_none(int64_t step, const StepCheck& check) {
  return {.kind = "step",
          .id = fmt::format("none: what step {} gave as a whole", step),
          .worst = check.difference,
          .before = check.ops->text() + ", compared with one device each, agree"};
}

}  // namespace

NativeRunCheck::NativeRunCheck(const Job& job, const TrainingRun::Options& options, StepVerifier& pair,
                               TrainingRun& run)
    : shaken_(with_microbatches_of(job, options.mesh, {}), on_one_device(options)), pair_(pair), run_(run) {}

void NativeRunCheck::begin(int64_t step) {
  pair_.load(run_.state(), step);
  copy_state(run_.state(), shaken_.state());
}

void NativeRunCheck::judge(int64_t step, const TokenBatch& batch, double learning_rate, const StepResult& result,
                           StepCheck& check) {
  Comparison comparison;
  agreed(run_.mesh(), [&] {
    Roundings roundings;
    const ObserverScope scope(shaken_.world().observers(), roundings);
    const auto shaken = shaken_.step(step, batch, learning_rate);
    LOCKSTEP_CHECK(roundings.rounded_values() > 0);
    comparison = compare_within_roundings(pair_.reference_record(step), record_of(step, shaken, shaken_.state()),
                                          record_of_run(step, result, run_));
  });
  check.run_over_bound = comparison.over_bound;
  check.difference = agreed_difference(run_.mesh(), comparison);
  if (check.agrees()) return;
  check.comparison = std::move(comparison);
  explain(step, batch, learning_rate, check);
}

void NativeRunCheck::explain(int64_t step, const TokenBatch& batch, double learning_rate, StepCheck& check) {
  pair_.restore_start(run_.state());
  OpVerifier ops(run_, /*sample=*/1);
  StepCheck watched;
  {
    const ObserverScope scope(run_.world().observers(), ops.observer());
    run_.step(step, batch, learning_rate);
  }
  ops.judge(watched);
  check.ops = watched.ops;
  check.blame = watched.blame ? watched.blame : blame_of_none(step, check);
  check.op_case = std::move(watched.op_case);
}

}  // namespace lockstep::trainer

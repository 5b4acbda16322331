#include "trainer/verify/native_run_check.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "consistency/held_shards.h"
#include "consistency/ops/roundings.h"
#include "consistency/ops/step_rounding.h"
#include "core/error.h"
#include "runtime/context/observer.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/together.h"
#include "trainer/verify/agreed_blame.h"
#include "trainer/verify/blame_reference.h"
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

/// What parts of sums of several ranks come to, put together without the collectives under suspicion. A collective.
at::Tensor finished(const at::Tensor& losses) {
  if (!spec_of(losses).any_partial) return losses;
  const PlainTensors guard;
  return distribute(whole_of(all_shards(local_shards(losses))), Layout::replicated(layout_of(losses).mesh()));
}

Difference another_update(const std::string& name, int64_t expected, int64_t made) {
  Difference difference;
  difference.kind = "times that the update ran", difference.name = name;
  difference.reference = static_cast<double>(expected), difference.candidate = static_cast<double>(made);
  difference.relative = HUGE_VAL, difference.wrong_elements = difference.elements = 1;
  return difference;
}

/// Whether the update is of a parameter that lives in other processes alone, as those of other stages do: they look.
bool is_elsewhere(const std::string& update, const TrainingState& state) {
  const auto parameter = update.substr(0, update.find(", "));
  return std::ranges::any_of(state, [&](const ParameterState& entry) {
    return entry.name == parameter && layout_of(entry.value).mesh().local_count() == 0;
  });
}

/// What no op of the optimizer wrote, on this process's ranks.
std::optional<Found> found_write(OpVerifier& ops) {
  const auto change = ops.take_write();
  if (change.empty()) return std::nullopt;
  return Found{0, fmt::format("{} was written in the step by something else than its update", change)};
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

/// Where replicas have microbatches of their own, one of one device holds other samples: losses are of other tokens.
StepRecord NativeRunCheck::record_of_run(int64_t step, const StepResult& result) {
  auto record = record_of(step, result, run_.state());
  const auto& batching = run_.batching();
  if (batching.replicas > 1 && batching.accumulation_steps > 1) record.token_losses.clear();
  for (auto& losses : record.token_losses) losses.value = finished(losses.value);
  return record;
}

void NativeRunCheck::shake(int64_t step, const TokenBatch& batch, double learning_rate) {
  Roundings roundings;
  const ObserverScope scope(shaken_.world().observers(), roundings);
  try {
    shaken_result_ = shaken_.step(step, batch, learning_rate);
  } catch (const Inconsistency&) {
    fail<Inconsistency>(
        "step {} cannot be compared as a whole: off by what its roundings may do, its loss or gradient norm is not "
        "finite on one device in float64; the run's is",
        step);
  }
  LOCKSTEP_CHECK(roundings.rounded_values() > 0);
  updates_ = roundings.updates();
}

Comparison NativeRunCheck::compared(const StepRecord& run, const std::vector<std::string>& updates) const {
  auto comparison = compare_within_roundings(pair_.reference_record(run.step),
                                             record_of(run.step, shaken_result_, shaken_.state()), run);
  std::map<std::string, std::pair<int64_t, int64_t>> times;
  for (const auto& update : updates_)
    if (!is_elsewhere(update, run_.state())) ++times[update].first;
  for (const auto& update : updates) ++times[update].second;
  for (const auto& [name, counts] : times)
    if (counts.first != counts.second) comparison.beyond.push_back(another_update(name, counts.first, counts.second));
  comparison.values += static_cast<int64_t>(times.size());
  return comparison;
}

void NativeRunCheck::judge(int64_t step, const TokenBatch& batch, double learning_rate, const StepResult& result,
                           OpVerifier& ops, StepCheck& check) {
  const auto record = record_of_run(step, result);
  const auto updates = ops.take_updates();
  Comparison comparison;
  std::optional<Found> write;
  agreed(run_.mesh(), [&] {
    write = found_write(ops);
    shake(step, batch, learning_rate);
    comparison = compared(record, updates);
  });
  check.run_over_bound = comparison.over_bound;
  check.difference = agreed_difference(run_.mesh(), comparison);
  if (const auto found = earliest(run_.mesh(), write); found && check.agrees()) check.difference = found->text;
  if (check.agrees()) return;
  explain(step, batch, learning_rate, check);
  if (!check.agrees()) check.comparison = std::move(comparison);
}

Decisions NativeRunCheck::exact_decisions(int64_t step, const TokenBatch& batch, double learning_rate) {
  pair_.restore_start(shaken_.state());
  Decisions decisions;
  const ObserverScope scope(shaken_.world().observers(), decisions);
  shaken_.step(step, batch, learning_rate);
  return decisions;
}

void NativeRunCheck::explain(int64_t step, const TokenBatch& batch, double learning_rate, StepCheck& check) {
  agreed(run_.mesh(), [&] { pair_.restore_start(run_.state()); });
  OpVerifier ops(run_, /*sample=*/1, OpCheck::Updates::kAll);
  std::optional<StepRecord> again;
  Decisions decisions;
  try {
    const OpVerifier::Watch watch(ops);
    const ObserverScope scope(run_.world().observers(), decisions);
    again = record_of_run(step, run_.step(step, batch, learning_rate));
  } catch (const Inconsistency&) {  // on all ranks alike; what its ops did is known
  }
  StepCheck watched;
  ops.judge(watched);
  check.ops = watched.ops;
  check.blame = watched.blame ? watched.blame : blame_of_none(step, check);
  check.op_case = std::move(watched.op_case);
  const auto updates = ops.take_updates();
  check.blame->transient = !any_rank(run_.mesh(), !again || found_write(ops) || !compared(*again, updates).agrees());
  if (watched.blame || check.blame->transient || !again) return;
  agreed(run_.mesh(),
         [&] { check.decided_otherwise = exact_decisions(step, batch, learning_rate).first_other(decisions); });
  if (!any_rank(run_.mesh(), check.decided_otherwise.empty())) check.difference.clear(), check.blame.reset();
}

}  // namespace lockstep::trainer

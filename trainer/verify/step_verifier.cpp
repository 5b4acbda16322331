#include "trainer/verify/step_verifier.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "replay/op_case/case_capture.h"
#include "replay/op_case/case_parts.h"
#include "runtime/context/observer.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/launch/together.h"

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

/// The job with the microbatches of `mesh` on `other`: an op's id holds its microbatch, and only equal ids compare.
Job with_microbatches_of(Job job, const MeshDegrees& mesh, const MeshDegrees& other) {
  job.training.local_batch_size =
      job.training.global_batch_size / derive_batching(job, mesh).accumulation_steps / other.data_parallel();
  return job;
}

/// With canonical numerics the number of microbatches must not matter.
Job reference_job(const Job& job, const MeshDegrees& mesh) {
  return compares_bits(job) ? job : with_microbatches_of(job, mesh, {});
}

/// Where replicas have microbatches of their own, a microbatch of one device holds other samples: then the ops are
/// compared with those of as many replicas.
MeshDegrees blame_mesh(const Job& job, const MeshDegrees& mesh) {
  MeshDegrees result;
  if (derive_batching(job, mesh).accumulation_steps > 1) result.dp_replicate = mesh.dp_replicate;
  return result;
}

void restore(TrainingState& state, const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  size_t next = 0;
  for (const auto& entry : state)
    for (auto [prefix, tensor] : entry.tensors()) tensor.copy_(values.at(next++));
}

StepRecord record_of(int64_t step, const StepResult& result, const TrainingRun& run) {
  StepRecord record{step, result.loss, result.gradient_norm, {}, {}, {}};
  size_t next = 0;
  for (const auto& entry : run.state()) {
    if (entry.trainable) record.gradients.push_back({entry.name, gather(result.gradients.at(next++))});
    record.parameters.push_back({entry.name, gather(entry.value)});
    for (const auto& slot : entry.slots)
      record.optimizer.push_back({fmt::format("{} of {}", slot.name, entry.name), gather(slot.tensor)});
  }
  return record;
}

/// What the lowest rank sees that sees any; on one that does not see it itself, whose it is.
std::string agreed_difference(const Mesh& mesh, const Comparison& comparison) {
  std::optional<Found> mine;
  if (!comparison.agrees()) mine = Found{0, comparison.beyond[0].text()};
  const auto first = earliest(mesh, mine);
  if (!first) return {};
  return first->rank == 0 ? first->text
                          : fmt::format("{}, seen by rank {} and not by rank 0", first->text, first->rank);
}

/// What comes first in the program of all that ranks blame, and who blames it.
struct AgreedBlame {
  Blame blame;
  bool is_here;  ///< in this process
};

std::optional<AgreedBlame> agreed_blame(const Mesh& mesh, const std::optional<Blame>& mine) {
  using nlohmann::json;
  std::optional<Found> found;
  if (mine) found = Found{mine->position, json{mine->id, mine->op, mine->rule, mine->layouts, mine->worst}.dump()};
  const auto first = earliest(mesh, found);
  if (!first) return std::nullopt;
  const auto text = json::parse(first->text).get<std::vector<std::string>>();
  const auto& ranks = mesh.local_ranks();
  const bool is_here = std::find(ranks.begin(), ranks.end(), first->rank) != ranks.end();
  return AgreedBlame{{text.at(0), text.at(1), text.at(2), text.at(3), text.at(4), first->position}, is_here};
}

/// What every process has of a case; nothing if one has none.
std::optional<replay::OpCase> joined(const Mesh& mesh, std::optional<replay::OpCase> part) {
  if (static_cast<int>(mesh.local_count()) == mesh.rank_count()) return part;
  const auto texts = texts_of_all_ranks(mesh, part ? replay::text_of_tensors(*part) : "");
  for (const auto& text : texts)
    if (text.empty()) return std::nullopt;
  for (const auto& text : texts) replay::add_tensors(*part, text);
  return part;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

StepVerifier::StepVerifier(const Job& job, TrainingRun::Options options)
    : job_(job),
      options_(options),
      bits_(compares_bits(job)),
      reference_(reference_job(job, options.mesh), reference_options(job, options)),
      own_candidate_(std::make_unique<TrainingRun>(job, candidate_options(job, options))),
      candidate_(own_candidate_.get()) {}

StepVerifier::StepVerifier(const Job& job, const TrainingRun::Options& options, TrainingRun& run)
    : job_(job),
      options_(options),
      bits_(compares_bits(job)),
      reference_(reference_job(job, options.mesh), reference_options(job, options)),
      candidate_(&run) {
  LOCKSTEP_CHECK(bits_);
}

void StepVerifier::load(const TrainingState& state) {
  copy_state(state, reference_.state());
  if (own_candidate_) copy_state(state, candidate_->state());
}

void StepVerifier::remember_start() {
  start_.clear();
  for (const auto& entry : reference_.state())
    for (const auto& [prefix, tensor] : entry.tensors()) start_.push_back(gather(tensor));
}

StepCheck StepVerifier::check(int64_t step, const TokenBatch& batch, double learning_rate) {
  remember_start();
  StepCheck check;
  const double before = now();
  StepResult reference;
  agreed(candidate_->mesh(), [&] { reference = reference_.step(step, batch, learning_rate); });
  const double between = now();
  candidate_->world().traffic().clear();
  check.result = candidate_->step(step, batch, learning_rate);
  check.seconds = now() - between;
  check.seconds_ratio = check.seconds / (between - before);
  check.bytes = candidate_->world().traffic().bytes();
  const auto expected = record_of(step, reference, reference_), actual = record_of(step, check.result, *candidate_);
  check.comparison = bits_ ? compare_bits(expected, actual) : compare(expected, actual, kFloat64Tolerance);
  check.difference = agreed_difference(candidate_->mesh(), check.comparison);
  if (!check.agrees()) explain(step, batch, learning_rate, check);
  return check;
}

void StepVerifier::run_watched(int64_t step, const TokenBatch& batch, double learning_rate, Observer& observer) {
  restore(candidate_->state(), start_);
  const ObserverScope scope(candidate_->world().observers(), observer);
  candidate_->step(step, batch, learning_rate);
}

void StepVerifier::explain(int64_t step, const TokenBatch& batch, double learning_rate, StepCheck& check) {
  OpTrace trace;
  {
    auto options = reference_options(job_, options_);
    options.mesh = blame_mesh(job_, options_.mesh);
    TrainingRun reference(with_microbatches_of(job_, options_.mesh, options.mesh), options);
    restore(reference.state(), start_);
    const ObserverScope scope(reference.world().observers(), trace);
    reference.step(step, batch, learning_rate);
  }
  restore(reference_.state(), start_);
  BlameObserver blamer(trace, bits_ ? 0 : kFloat64Tolerance);
  run_watched(step, batch, learning_rate, blamer);
  const auto blamed = agreed_blame(candidate_->mesh(), blamer.blame());
  check.blame =
      blamed ? blamed->blame : Blame{"no single op: every op agrees on its own", "step", "", "", check.difference};
  if (!blamed) return;
  replay::CaseCapture capture(check.blame->id);
  run_watched(step, batch, learning_rate, capture);
  check.op_case = joined(candidate_->mesh(), capture.take(check.blame->text(), trace.results().at(check.blame->id)));
  if (!blamed->is_here) check.op_case.reset();
}

}  // namespace lockstep::trainer

// What a run's batches are to the model: where their rows lie, and the loss of each token or pair.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "core/document_places.h"
#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/stages/not_trained.h"
#include "trainer/step/preference_loss.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {
namespace {

at::Tensor plain_rows(const std::vector<int64_t>& values, const TokenBatch& batch, const BatchRows& rows) {
  std::vector<at::Tensor> runs;
  for (const auto& run : rows.runs({0, rows.count}))
    runs.push_back(at::from_blob(const_cast<int64_t*>(values.data()) + (run.rows.start + run.shift) * batch.seq_len,
                                 {run.rows.length, batch.seq_len}, at::kLong));
  return at::cat(runs);
}

/// A token follows the one before in its document, or begins one, as every row does.
void require_places(const TokenBatch& batch) {
  if (batch.positions.empty()) return;
  if (batch.positions.size() != batch.tokens.size())
    fail<BadInput>("a batch of {} tokens has {} positions in documents", batch.tokens.size(), batch.positions.size());
  const auto length = static_cast<size_t>(batch.seq_len);
  const auto wrong = first_wrong_place(std::span(batch.positions), length);
  if (!wrong) return;
  const size_t i = *wrong;
  fail<BadInput>("token {} of row {} has position {} in its document, expected 0{}", i % length, i / length,
                 batch.positions[i], i % length == 0 ? "" : fmt::format(" or {}", batch.positions[i - 1] + 1));
}

}  // namespace

/// Of which tokens there is a loss; of pairs of all.
at::Tensor TrainingRun::counted(const TokenBatch& batch, const BatchRows& rows) const {
  const PlainTensors guard;
  if (prefers()) return at::ones({rows.count / 2}, at::kBool);
  return at::ne(plain_rows(batch.labels, batch, rows), kIgnoredLabel);
}

double TrainingRun::labels_of(const TokenBatch& batch) const {
  require_places(batch);
  const auto labels = placed(*plan_, batch.labels, batch, {.count = batch.rows}, "batch length");
  const auto count = whole(at::sum(at::ne(labels, kIgnoredLabel)));
  return options_.meta ? 1 : static_cast<double>(count.item<int64_t>());
}

/// What losses are divided by: at least 1, so that a batch without labels has a loss of 0.
double TrainingRun::valid_tokens(const TokenBatch& batch) const {
  if (!prefers()) return std::max(labels_of(batch), 1.0);
  require_places(batch);
  const int64_t pairs = batch.rows / 2;
  return static_cast<double>(pairs);
}

/// Of microbatches that have begun: by the model that the run began as, the one without its changes of low rank.
void TrainingRun::find_reference_losses(Range microbatches) {
  if (!prefers()) return;
  const at::NoGradGuard no_grad;
  const RandomScope random(static_cast<uint64_t>(job_.debug.seed));
  const NotTrained scope(*stages_, {.adapts = false});
  const auto& batch = *underway().batch;
  const auto losses = forwards({batching_.rows(0).count, batch.seq_len}, microbatches,
                               [&](Stage& stage, int64_t microbatch, const at::Tensor& input) {
                                 const auto rows = batching_.rows(microbatch);
                                 const BatchScope batch_scope(rows);
                                 return stage_output(stage, batch, rows, input);
                               });
  for (int64_t m = 0; m < microbatches.length; ++m)
    underway().reference_losses[microbatches.start + m] = losses[static_cast<size_t>(m)];
}

at::Tensor TrainingRun::preferred(const at::Tensor& own, const at::Tensor& reference) const {
  const PhaseScope phase(Phase::kForward);
  const ModuleScope scope("loss");
  return preference_losses(own, reference, job_.training.dpo_beta);
}

/// What a stage hands on; of the last one the loss of each token. `input` of the first is not read.
at::Tensor TrainingRun::stage_output(Stage& stage, const TokenBatch& batch, const BatchRows& rows,
                                     const at::Tensor& input) {
  const auto& plan = stage.plan();
  const auto place = [&](const auto& values) { return placed(plan, values, batch, rows, "batch whole"); };
  // A table is read for the whole length at once: its gradient is a sum over all of it.
  const auto x = stage.is_first() ? place(batch.tokens) : input;
  stage.hooks().set_positions(batch.positions.empty() ? at::Tensor() : place(batch.positions));
  const PhaseScope phase(Phase::kForward);
  const auto output = stage.forward(x, {rows.count, batch.seq_len});
  return stage.is_last() ? token_losses(stage, output, batch, rows) : output;
}

at::Tensor TrainingRun::token_losses(Stage& stage, const at::Tensor& output, const TokenBatch& batch,
                                     const BatchRows& rows) {
  const auto& plan = stage.plan();
  const auto labels = placed(plan, batch.labels, batch, rows, "batch length");
  const ModuleScope scope("loss");
  auto logits = output;
  if (job_.parallelism.disable_loss_parallel)
    logits = redistribute(logits, plan.activation(logits.sizes(), "batch length whole"));
  return mesh_ops::token_losses(logits, labels, kIgnoredLabel, c10::kFloat);
}

at::Tensor TrainingRun::placed(const ShardingPlan& plan, const std::vector<int64_t>& values, const TokenBatch& batch,
                               const BatchRows& rows, std::string_view axes) const {
  const auto plain = plain_rows(values, batch, rows);
  return distribute(plain, plan.activation(plain.sizes(), axes));
}

}  // namespace lockstep::trainer

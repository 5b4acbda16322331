// What a run does with a microbatch on one stage of its model, or on all of them.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transfer/whole_mesh.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {
namespace {

at::Tensor ones_as(const at::Tensor& tensor) {
  const auto& layout = layout_of(tensor);
  return distribute(at::ones(tensor.sizes(), layout.mesh().all().device()), layout);
}

}  // namespace

at::Tensor TrainingRun::forward_loss(int64_t microbatch) {
  const RunContext::Use use(context_);
  LOCKSTEP_CHECK(microbatch >= 0 && microbatch < batching_.accumulation_steps, "microbatch {}", microbatch);
  LOCKSTEP_CHECK_EQ(stages_->count(), 1u, "a pipeline runs whole steps");
  context_.begin_microbatch(underway().step, microbatch);
  find_reference_losses({microbatch, 1});
  return stage_forward(stages_->last(), microbatch, {});
}

void TrainingRun::accumulate(int64_t microbatch, const at::Tensor& losses) {
  const RunContext::Use use(context_);
  context_.continue_microbatch(microbatch);
  stage_backward(stages_->last(), microbatch, losses, {});
  end_stage(stages_->last(), microbatch, nullptr);
}

void TrainingRun::run_pipeline_step() {
  const RunContext::Use use(context_);
  for (int64_t m = 0; m < batching_.accumulation_steps; ++m) context_.begin_microbatch(underway().step, m);
  find_reference_losses({0, batching_.accumulation_steps});
  const StageWork work{
      [this](Stage& stage, int64_t microbatch, const at::Tensor& input) {
        return stage_forward(stage, microbatch, input);
      },
      [this](Stage& stage, int64_t microbatch, const at::Tensor& output, const at::Tensor& gradient) {
        stage_backward(stage, microbatch, output, gradient);
      },
      [this](Stage& stage, int64_t microbatch, SplitBackward* split) { end_stage(stage, microbatch, split); }};
  run_pipeline(*stages_, context_, {batching_.rows(0).count, underway().batch->seq_len}, work);
  context_.continue_microbatch(batching_.accumulation_steps - 1);  // what follows is called alike on all ranks
}

/// Of the last stage the losses.
at::Tensor TrainingRun::stage_forward(Stage& stage, int64_t microbatch, const at::Tensor& input) {
  const auto& batch = *underway().batch;
  const RandomScope random(static_cast<uint64_t>(job_.debug.seed));
  const auto rows = batching_.rows(microbatch);
  if (!prefers() || stages_->count() > 1) stage.hooks().begin_microbatch();  // else its reference has begun it
  stage.accumulator().enter(microbatch);
  const BatchScope batch_scope(rows);
  const auto output = stage_output(stage, batch, rows, input);
  return prefers() && stage.is_last() ? preferred(output, underway().reference_losses.at(microbatch)) : output;
}

void TrainingRun::stage_backward(Stage& stage, int64_t microbatch, const at::Tensor& output,
                                 const at::Tensor& gradient) {
  auto& [step, batch, rate, valid, sum, kept_losses, local_losses, references] = underway();
  stage.accumulator().enter(microbatch);
  at::Tensor values, part;
  {
    const models::HooksScope hooks(stage.hooks());
    const PhaseScope phase(Phase::kBackward);
    const auto seed = stage.is_last() ? at::div(ones_as(output), valid) : gradient;
    if (output.requires_grad() || stage.is_last()) output.backward(seed);  // a first stage may have nothing to train
    if (stage.is_last()) {
      values = output.detach();
      part = world_->canonical() ? mesh_ops::fixed_point_sum(values) : at::sum(values);
    }
  }
  if (!stage.is_last()) return;
  if (options_.keep_gradients) {
    kept_losses.resize(static_cast<size_t>(batching_.accumulation_steps));
    kept_losses[static_cast<size_t>(microbatch)] = values;
  }
  if (!options_.meta) local_losses.add(values, counted(*batch, batching_.rows(microbatch)));
  sum = sum.defined() ? at::add(sum, part) : part;
}

/// What is left of a microbatch's backward.
void TrainingRun::end_stage(Stage& stage, int64_t microbatch, SplitBackward* split) {
  stage.accumulator().enter(microbatch);
  if (split) {
    const PhaseScope phase(Phase::kBackward);
    split->finish();
  }
  stage.end_microbatch(microbatch);
}

/// What the last stage makes of microbatches that have begun; not defined where it is not. One stage after the other,
/// so that a rank that has several does not wait in between.
std::vector<at::Tensor> TrainingRun::forwards(std::vector<int64_t> tokens, Range microbatches,
                                              const StageForward& forward) {
  constexpr auto kActivation = StageTransfers::Kind::kActivation;
  StageTransfers transfers(*stages_, context_, std::move(tokens), microbatches);
  std::vector<at::Tensor> outputs(static_cast<size_t>(microbatches.length));
  for (size_t s = 0; s < stages_->count(); ++s)
    for (int64_t i = 0; i < microbatches.length; ++i) {
      auto& stage = (*stages_)[s];
      if (!stage.is_here()) continue;
      const auto microbatch = microbatches.start + i;
      context_.continue_microbatch(microbatch);
      stage.hooks().begin_microbatch();
      const auto input = stage.is_first() ? at::Tensor() : transfers.take(kActivation, stage, microbatch);
      auto output = forward(stage, microbatch, input);
      if (stage.is_last())
        outputs[static_cast<size_t>(i)] = std::move(output);
      else
        transfers.give(kActivation, stage, microbatch, transfers.handed_on(stage, output));
    }
  return outputs;
}

/// The value of a sum that the last stage has, on every rank; not defined elsewhere.
double TrainingRun::number_of(const at::Tensor& sum) {
  if (stages_->count() == 1) return value_of(whole(sum));
  const ModuleScope module("loss");  // what follows is called alike where nothing was summed
  const double here = sum.defined() ? value_of(whole(sum)) : 0;
  const auto& last = stages_->last().mesh();
  const auto device = options_.meta ? c10::Device(c10::kMeta) : world_->shard_device();
  const Shards shards(last.local_count(), at::full({}, here, at::dtype(c10::kDouble).device(device)));
  const CommunicationScope scope(*world_, "number_of_last_stage");
  const auto everywhere = on_whole_mesh({from_shards(shards, Layout::replicated(last), {}, c10::kDouble)})[0];
  return options_.meta ? 0 : gather(everywhere).item<double>();
}

/// Where the last stage is not, they have no shards.
std::vector<at::Tensor> TrainingRun::token_losses_of_all(std::vector<at::Tensor> last) {
  auto& stage = stages_->last();
  if (stage.is_here()) return last;
  const auto rows = batching_.rows(0).count;
  const auto sizes = prefers() ? std::vector<int64_t>{rows / 2} : std::vector<int64_t>{rows, job_.training.seq_len};
  const auto layout = stage.plan().activation(sizes, prefers() ? "batch" : "batch length");
  const auto none = from_shards({}, layout, sizes, c10::kFloat);
  return std::vector<at::Tensor>(static_cast<size_t>(batching_.accumulation_steps), none);
}

/// Those of the last stage's ranks that live here; the others have none.
std::vector<LocalLoss> TrainingRun::local_losses_of_all(std::vector<LocalLoss> last) const {
  if (stages_->count() == 1) return last;
  std::vector<LocalLoss> all(mesh().local_count());
  const auto& ranks = stages_->last().mesh().local_ranks();
  for (size_t i = 0; i < last.size(); ++i) all[static_cast<size_t>(mesh().local_index(ranks[i]))] = last[i];
  return all;
}

}  // namespace lockstep::trainer

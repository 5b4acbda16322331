#include "trainer/stages/stage.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/context/named_draws.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/gradients/shard_axes.h"

namespace lockstep::trainer {
namespace {

std::vector<models::Parameter*> parameters_of(models::Model& model, const Stage::Place& place) {
  if (place.count == 1) return model.parameters();
  std::vector<models::Parameter*> all;
  const auto blocks = model.blocks();
  for (size_t b = place.first; b < place.end; ++b)
    for (auto* parameter : blocks[b]->parameters()) all.push_back(parameter);
  return all;
}

}  // namespace

Stage::Stage(models::Model& model, ShardingPlan plan, Place place, const Batching& batching, BlockOptions options)
    : model_(model),
      place_(place),
      batching_(batching),
      dtype_(options.compute_dtype),
      bucket_bytes_(options.bucket_bytes),
      replicas_share_(options.replicas_share),
      parameters_(parameters_of(model, place)),
      plan_(std::move(plan)),
      hooks_(plan_, with_leaves(std::move(options), batching)) {}

std::string Stage::path() const { return fmt::format("stages.{}", place_.number); }

const at::Tensor& Stage::tensor_of(const models::Parameter& parameter) const {
  for (const auto& shared : shared_)
    if (shared.parameter == &parameter) return shared.copy;
  return parameter.tensor();
}

BlockOptions Stage::with_leaves(BlockOptions options, const Batching& batching) {
  options.leaf = [this](const models::Parameter& parameter) {
    const auto& tensor = tensor_of(parameter);
    return hooks_.trains() ? accumulator_->leaf(tensor) : tensor;
  };
  options.sequences = batching.global_batch_size;
  auto& taker = options.gradient_taker;
  if (mesh().world().canonical() && batching.nodes_per_microbatch() > 1)
    taker.samples = batching.data_parallel * batching.local_batch_size;
  taker.microbatches = batching.accumulation_steps;
  taker.take_nodes = [this](const at::Tensor& leaf, const at::Tensor& nodes) { accumulator_->take_nodes(leaf, nodes); };
  taker.take = [this](const at::Tensor& leaf, const at::Tensor& sum) { accumulator_->take_gradient(leaf, sum); };
  taker.underway = &reductions_;
  return options;
}

std::vector<const models::Parameter*> Stage::read_elsewhere() const {
  std::vector<const models::Parameter*> found;
  const auto calls = model_.block_calls(std::vector<int64_t>{1, 1});
  for (size_t b = place_.first; b < place_.end; ++b)
    for (const auto* parameter : calls.at(b).shared)
      if (std::find(parameters_.begin(), parameters_.end(), parameter) == parameters_.end() &&
          std::find(found.begin(), found.end(), parameter) == found.end())
        found.push_back(parameter);
  return found;
}

void Stage::start(std::vector<SharedParameter> shared, const GradientCallback& callback) {
  shared_ = std::move(shared);
  std::vector<at::Tensor> values;
  std::vector<std::string> names;
  const auto add = [&](const models::Parameter& parameter, const at::Tensor& tensor) {
    if (!parameter.trainable()) return;
    values.push_back(tensor);
    names.push_back(parameter.name());
  };
  for (const auto* parameter : parameters_) add(*parameter, parameter->tensor());
  for (const auto& each : shared_) add(*each.parameter, each.copy);
  accumulator_ = std::make_unique<GradientAccumulator>(std::move(values), batching_, mesh().world().numerics(), names,
                                                       place_.count > 1 ? path() : "", bucket_bytes_, replicas_share_);
  accumulator_->on_gradient([callback, names](int64_t microbatch, size_t parameter, at::Tensor& gradient) {
    callback(microbatch, names[parameter], gradient);
  });
}

const TensorSpec& Stage::gradient_spec(const models::Parameter& parameter) const {
  const auto& spec = spec_of(parameter.tensor());
  const auto layout = update_layout(spec.layout, spec.sizes, replicas_share_);
  return *layout.mesh().specs().intern(layout, spec.sizes, spec.dtype);
}

void Stage::end_microbatch(int64_t microbatch) {
  {
    const PhaseScope phase(Phase::kBackward);
    const at::NoGradGuard no_grad;
    reductions_.finish();
  }
  accumulator_->end_microbatch(microbatch);
}

void Stage::restart() {
  reductions_.forget();
  hooks_.expert_balance().forget();
  accumulator_->restart();
}

/// What a model computes for all of its blocks is computed on each stage: ops of later ones have names of their own.
std::vector<models::BlockCall> Stage::calls_for(at::IntArrayRef tokens) {
  const ModuleScope scope(is_first() ? "" : path());
  return model_.block_calls(tokens);
}

at::Tensor Stage::forward(const at::Tensor& input, at::IntArrayRef tokens) {
  const models::HooksScope scope(hooks_);
  if (place_.count == 1) return model_.forward(input);
  const auto blocks = model_.blocks();
  const NamedDraws guard;
  const auto calls = calls_for(tokens);
  LOCKSTEP_CHECK_EQ(calls.size(), blocks.size());
  auto x = input;
  for (size_t b = place_.first; b < place_.end; ++b) x = run_block(*blocks[b], x, calls[b].forward);
  return x;
}

const TensorSpec* Stage::input_spec(at::IntArrayRef tokens) const {
  const std::vector<int64_t> sizes{tokens[0], tokens[1], model_.width()};
  return mesh().specs().intern(plan_.activation(sizes, "batch norm_length embed"), sizes, dtype_);
}

}  // namespace lockstep::trainer

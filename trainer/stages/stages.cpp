#include "trainer/stages/stages.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/plain/lazy_copy.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/ranks.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transfer/transfer.h"
#include "trainer/gradients/replica_sums.h"
#include "trainer/job/mesh_degrees.h"
#include "trainer/sharding/ring_cuts.h"

namespace lockstep::trainer {
namespace {

PipelinePlan plan_of_mesh(const Job& job, models::Model& model, const Mesh& mesh, const Batching& batching) {
  const int axis = mesh.find_axis(axis::kPipeline);
  return plan_pipeline(job, model, axis < 0 ? 1 : mesh.axis_size(axis), batching.accumulation_steps);
}

/// Of what is sent between steps.
constexpr uint64_t kValueTag = 1, kGradientTag = 2;

/// Of the `n`-th shared parameter; those between stages begin higher (stage_transfers.cpp).
uint64_t tag_of(uint64_t kind, uint64_t n) { return kind + (n << 8 & 0xffffffff); }

/// The tensor on another stage, or as it is where that has the same ranks. It is not read where none of its own lives.
at::Tensor moved(const at::Tensor& tensor, const Stage& from, const Stage& to, const TensorSpec* spec, uint64_t tag) {
  if (&from.mesh() == &to.mesh()) return tensor;
  if (from.is_here()) {
    const ModuleScope scope(from.path());
    send(tensor, to.mesh(), tag);
  }
  const ModuleScope scope(to.path());
  return PendingTransfer(spec, from.mesh(), tag).finish();
}

at::Tensor without_shards(const TensorSpec& spec) { return make_sharded(&spec, Shards()); }

}  // namespace

Stages::Stages(const Job& job, models::Model& model, const ShardingPlan& plan, const Batching& batching)
    : model_(model), pipeline_(plan_of_mesh(job, model, plan.mesh(), batching)) {
  const auto& first_blocks = pipeline_.first_blocks;
  const auto options = block_options(job, model);
  for (size_t s = 0; s < first_blocks.size(); ++s) {
    const bool is_one = first_blocks.size() == 1;
    const auto& part = is_one ? plan.mesh() : plan.mesh().submesh(axis::kPipeline, pipeline_.schedule.rank_of_stage[s]);
    const auto end = s + 1 < first_blocks.size() ? static_cast<size_t>(first_blocks[s + 1]) : model.blocks().size();
    stages_.push_back(
        std::make_unique<Stage>(model, plan.on(part),
                                Stage::Place{static_cast<int64_t>(s), static_cast<int64_t>(first_blocks.size()),
                                             static_cast<size_t>(first_blocks[s]), end},
                                batching, options));
  }
  require_blocks_have_all();
  require_one_reader();
  if (job.parallelism.context_parallel_rotate_method != kRing) return;
  require_ring_fits(stages_[0]->plan(), "training.seq_len", job.training.seq_len);
  if (job.validation.enable && job.validation.seq_len)
    require_ring_fits(stages_[0]->plan(), "validation.seq_len", *job.validation.seq_len);
}

void Stages::require_blocks_have_all() const {
  std::set<const models::Parameter*> all;
  for (const auto& stage : stages_) all.insert(stage->parameters().begin(), stage->parameters().end());
  for (const auto* parameter : model_.parameters())
    if (!all.contains(parameter))
      fail<BadInput>("parameter {} is in none of the model's blocks: a pipeline has no stage for it.",
                     parameter->name());
}

/// With a third use somewhere sums would be added in another order than on one device.
void Stages::require_one_reader() const {
  std::set<const models::Parameter*> read;
  if (stages_.size() == 1) return;
  for (const auto& call : model_.block_calls(std::vector<int64_t>{1, 1}))
    for (const auto* parameter : call.shared)
      if (!read.insert(parameter).second)
        fail<BadInput>("parameter {} is read by two blocks besides its own; a pipeline can have one.",
                       parameter->name());
}

const ShardingPlan& Stages::plan_of(const models::Parameter& parameter) const { return owner_of(parameter).plan(); }

const Stage& Stages::owner_of(const models::Parameter& parameter) const {
  for (const auto& stage : stages_)
    if (std::find(stage->parameters().begin(), stage->parameters().end(), &parameter) != stage->parameters().end())
      return *stage;
  LOCKSTEP_CHECK(false, "no stage has {}", parameter.name());
}

/// Those of other stages that its blocks read.
std::vector<SharedParameter> Stages::shared_of(Stage& stage) {
  std::vector<SharedParameter> shared;
  if (stages_.size() == 1) return shared;
  for (const auto* parameter : stage.read_elsewhere()) {
    const auto& owner = owner_of(*parameter);
    const auto& spec = spec_of(parameter->tensor());
    const auto* here = &owner.mesh() == &stage.mesh() ? &spec : spec_at(spec, stage.mesh());
    const PlainTensors guard;
    Shards shards;
    for (const auto& sizes : here->local_sizes)
      shards.push_back(at::empty(sizes, at::dtype(storage(*here)).device(stage.mesh().all().device())));
    shared.push_back({parameter, &owner, make_sharded(here, std::move(shards))});
  }
  return shared;
}

void Stages::start(const Stage::GradientCallback& callback) {
  for (auto* parameter : model_.parameters())
    if (parameter->trainable()) trainable_.push_back(parameter);
  for (auto& stage : stages_) stage->start(shared_of(*stage), callback);
}

void Stages::refresh_shared() {
  const PhaseScope phase(Phase::kForward);
  const at::NoGradGuard no_grad;
  uint64_t n = 0;
  for (auto& stage : stages_)
    for (auto& shared : stage->shared()) {
      const ModuleScope scope(shared.parameter->name());
      const auto arrived =
          moved(shared.parameter->tensor(), *shared.owner, *stage, &spec_of(shared.copy), tag_of(kValueTag, n++));
      const PlainTensors guard;
      const auto& from = sharded(arrived).shards()->whole();
      const auto& to = sharded(shared.copy).shards()->whole();
      for (size_t i = 0; i < to.size(); ++i) before_write(to[i]), at::Tensor(to[i]).copy_(from[i]);
      shared.copy.unsafeGetTensorImpl()->bump_version();
    }
}

/// Of what lives on a stage, and into `shared` what it found of parameters of other stages.
std::vector<at::Tensor> Stages::own_gradients(size_t stage, std::vector<at::Tensor>& shared) {
  auto& self = *stages_[stage];
  auto found = self.accumulator().finish();
  size_t own = 0;
  for (const auto* parameter : self.parameters()) own += parameter->trainable() ? 1 : 0;
  shared.assign(found.begin() + static_cast<std::ptrdiff_t>(own), found.end());
  found.resize(own);
  return found;
}

void Stages::add_shared(Stage& stage, std::vector<at::Tensor> found, std::vector<at::Tensor>& gradients) {
  size_t next = 0;
  for (const auto& shared : stage.shared()) {
    if (!shared.parameter->trainable()) continue;
    const ModuleScope scope(shared.parameter->name());
    const auto at = std::find(trainable_.begin(), trainable_.end(), shared.parameter) - trainable_.begin();
    auto& gradient = gradients[static_cast<size_t>(at)];
    const auto& mine = next < found.size() ? found[next] : at::Tensor();
    ++next;
    const auto arrived =
        moved(mine, stage, *shared.owner, &shared.owner->gradient_spec(*shared.parameter), tag_of(kGradientTag, next));
    if (shared.owner->is_here()) gradient = sum_of(gradient, arrived);
  }
}

std::vector<at::Tensor> Stages::finish() {
  const PhaseScope phase(Phase::kReduce);
  const at::NoGradGuard no_grad;
  std::map<const models::Parameter*, at::Tensor> found;
  std::vector<std::vector<at::Tensor>> shared(stages_.size());
  for (size_t s = 0; s < stages_.size(); ++s) {
    if (!stages_[s]->is_here()) continue;
    const auto own = own_gradients(s, shared[s]);
    size_t next = 0;
    for (const auto* parameter : stages_[s]->parameters())
      if (parameter->trainable()) found[parameter] = own[next++];
  }
  std::vector<at::Tensor> gradients;
  for (const auto* parameter : trainable_)
    gradients.push_back(found.contains(parameter) ? found[parameter]
                                                  : without_shards(stages_[0]->gradient_spec(*parameter)));
  for (size_t s = 0; s < stages_.size(); ++s) add_shared(*stages_[s], std::move(shared[s]), gradients);
  return gradients;
}

void Stages::balance_experts() {
  for (auto& stage : stages_) stage->hooks().expert_balance().finish();
}

void Stages::restart() {
  for (auto& stage : stages_) stage->restart();
}

void Stages::set_training(bool trains, models::KeyValueCache* cache, bool adapts) {
  for (auto& stage : stages_) {
    auto& hooks = stage->hooks();
    hooks.set_trains(trains), hooks.set_cache(cache), hooks.set_adapts(adapts);
  }
}

}  // namespace lockstep::trainer

#include "trainer/step/training_run.h"

#include <ATen/Functions.h>

#include <cmath>

#include "core/error.h"
#include "runtime/context/gpu.h"
#include "runtime/context/scopes.h"
#include "runtime/context/told_values.h"
#include "runtime/deferred/range_checks.h"
#include "runtime/dispatch/backend.h"
#include "runtime/kernels/on_gpu/canonical_self_test.h"
#include "runtime/kernels/on_gpu/state_visit.h"
#include "runtime/kernels/self_test/self_test.h"
#include "runtime/local_calls/decomposition.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/rule_set.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/launch/together.h"
#include "trainer/optim/parameter_settings.h"
#include "trainer/state/adapters.h"
#include "trainer/state/float32_parameters.h"
#include "trainer/step/gradient_norm.h"
#include "trainer/step/memory_need.h"
#include "trainer/step/updated_parts.h"
#include "trainer/weights/exchange/load_weights.h"

namespace lockstep::trainer {
namespace {

/// Canonical in the native domain only.
Numerics numerics_of(const Job& job, Domain domain) {
  return job.numerics.is_canonical() && domain == Domain::kDeclared ? Numerics::kCanonical : Numerics::kNative;
}

/// The first of each stage, and of each part of a sequence that sends of its own: the others do alike.
std::vector<int> ranks_that_differ(const MeshDegrees& mesh, const Job& job) {
  const bool transfers = job.parallelism.context_parallel_rotate_method == kRing ||
                         job.parallelism.context_parallel_load_balancer == kHeadTail;
  const int64_t parts = transfers ? mesh.cp : 1;
  std::vector<int> ranks;
  for (int64_t stage = 0; stage < mesh.pp; ++stage)
    for (int64_t part = 0; part < parts; ++part)
      ranks.push_back(static_cast<int>(stage * (mesh.ranks() / mesh.pp) + part * mesh.tp));
  return ranks;
}

std::unique_ptr<World> make_world(const TrainingRun::Options& options, const Job& job) {
  register_backend();
  World::Options world;
  world.rank_count = static_cast<int>(options.mesh.ranks());
  world.domain = options.domain;
  world.numerics = numerics_of(job, options.domain);
  if (world.numerics == Numerics::kCanonical) world.rounded_levels = job.numerics.rounded_levels;
  world.rules = options.rules;
  world.policy.strict = job.parallelism.strict;
  world.meta = options.meta;
  world.local_ranks = options.local_ranks;
  world.transport = options.transport;
  world.as_messages = options.as_messages;
  world.overlap = options.overlap;
  if (options.meta) world.local_ranks = ranks_that_differ(options.mesh, job);
  if (job.training.device == "cuda" && !options.meta) {
    require_gpu(options.local_ranks.empty() ? 0 : options.local_ranks[0]);
    world.device = c10::kCUDA;
  }
  if (world.numerics == Numerics::kCanonical && !options.meta) {
    kernels::require_self_test();
    if (world.device == c10::kCUDA) on_gpu::require_canonical_self_test();
  }
  return std::make_unique<World>(std::move(world));
}

/// Gradients of 16-bit computation stay unrounded while they are Partial, and sums over microbatches are told from
/// sums of a parameter's uses. So that one device's are, too, it is a mesh of one replica; and so that experts' are, of
/// which a rank has all samples' rows.
std::vector<MeshAxis> axes_of(const MeshDegrees& degrees, const Job& job, const Batching& batching) {
  auto axes = mesh_axes(degrees);
  const bool by_microbatch = job.numerics.is_canonical() && batching.accumulation_steps > 1;
  const bool in_16_bits = job.training.mixed_precision_param != "float32";
  const bool has_no_sums = degrees.dp_replicate == 1 && (degrees.dp_shard == 1 || degrees.ep > 1);
  if (has_no_sums && (by_microbatch || in_16_bits))
    axes.insert(axes.begin() + (degrees.pp > 1 ? 1 : 0), {axis::kReplicate, 1});
  return axes;
}

std::unique_ptr<models::Model> model_of(const Job& job, const TrainingRun::Options& options) {
  auto model = options.make_model ? options.make_model() : make_model(job);
  attach_adapters(*model, job.lora);
  keep_in_float32(*model, job);
  return model;
}

/// What brings gradients of this norm down to the job's limit.
double clipping_scale(const Job& job, double gradient_norm) {
  const double limit = job.training.max_norm;
  return limit > 0 ? std::min(1.0, limit / (gradient_norm + 1e-6)) : 1.0;
}

}  // namespace

TrainingRun::TrainingRun(Job job, Options options)
    : job_(std::move(job)),
      options_(std::move(options)),
      batching_(derive_batching(job_, options_.mesh)),
      world_(make_world(options_, job_)),
      model_(model_of(job_, options_)),
      plan_(std::make_unique<ShardingPlan>(world_->mesh(axes_of(options_.mesh, job_, batching_)),
                                           axis_rules(options_.mesh))),
      stages_(std::make_unique<Stages>(job_, *model_, *plan_, batching_)),
      optimizer_(options_.make_optimizer ? options_.make_optimizer() : make_optimizer(job_)),
      state_(first_state(apply_groups(job_.optimizer, *model_))) {
  if (job_.parallelism.enable_async_tensor_parallel) world_->part<Decomposition>().set_axis(axis::kTensor);
  stages_->start([this](int64_t microbatch, const std::string& parameter, at::Tensor& gradient) {
    if (listener_) listener_->take_gradient(microbatch, parameter, gradient);
  });
}

TrainingRun::~TrainingRun() = default;

TrainingState TrainingRun::first_state(const std::vector<ParameterSettings>& settings) {
  if (!options_.meta && !world_->shard_device().is_cuda())
    require_memory(*model_, *stages_, *optimizer_, settings, batching_, job_.training.seq_len,
                   job_.parallelism.disable_loss_parallel ? options_.mesh.tp : 1,
                   job_.parallelism.shard_optimizer_state);
  auto state = initial_state(*model_, *stages_, *optimizer_, settings, job_);
  if (options_.meta) return state;
  const auto& folder = job_.checkpoint.initial_load_path;
  const bool loads = !folder.empty() && options_.loads_weights;
  const auto loaded = loads ? load_weights_together(folder, job_, state) : LoadedWeights::kModel;
  if (loaded == LoadedWeights::kModel) start_magnitudes(*model_, state);
  if (loads || job_.lora.dora) follow_values(state);
  return state;
}

StepResult TrainingRun::step(int64_t step, const TokenBatch& batch, double learning_rate) {
  begin_step(step, batch, learning_rate);
  if (stages_->count() > 1)
    run_pipeline_step();
  else
    for (int64_t m = 0; m < batching_.accumulation_steps; ++m) accumulate(m, forward_loss(m));
  return apply();
}

TrainingRun::Underway& TrainingRun::underway() {
  LOCKSTEP_CHECK(underway_, "no step was begun");
  return *underway_;
}

void TrainingRun::begin_step(int64_t step, const TokenBatch& batch, double learning_rate) {
  const RunContext::Use use(context_);
  LOCKSTEP_CHECK_EQ(batch.rows, batching_.global_batch_size);
  if (underway_) stages_->restart();
  world_->part<RangeChecks>().forget();  // of what was given up
  underway_.reset();
  if (listener_) listener_->begin_step(step, batch, learning_rate, state_);
  context_.begin_microbatch(step, 0);
  underway_ = Underway{step, &batch, learning_rate, told_number(mesh(), "valid_tokens", valid_tokens(batch))};
  stages_->refresh_shared();
}

StepResult TrainingRun::apply() {
  const RunContext::Use use(context_);
  auto [step, batch, rate, valid, sum, kept_losses, local_losses, references] = underway();
  StepResult result;
  result.loss = told_number(mesh(), "loss", number_of(sum) / valid);
  const auto local = local_losses.take();  // before the update, which a GPU is left to finish
  auto gradients = stages_->finish();
  world_->part<Decomposition>().settle();  // before parameters are written
  underway_.reset();
  result.gradient_norm = told_number(mesh(), "gradient_norm", gradient_norm(gradients));
  require_finite(step, result);
  result.valid_tokens = valid;
  const double scale = told_number(mesh(), "clip", clipping_scale(job_, result.gradient_norm));
  result.scalars = optimizer_->scalars(step, rate, scale);
  update(gradients, result.scalars);
  report(result);
  result.local_losses = local_losses_of_all(local);
  if (options_.keep_gradients)
    result.gradients = std::move(gradients), result.token_losses = token_losses_of_all(std::move(kept_losses));
  return result;
}

/// One rank may see numbers that others do not: none updates then.
void TrainingRun::require_finite(int64_t step, const StepResult& result) const {
  const bool is_finite = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  if (!any_rank(!is_finite)) return;
  std::optional<Found> mine;
  if (!is_finite)
    mine = Found{0, fmt::format("step {}: loss {} and gradient norm {} are not both finite", step, result.loss,
                                result.gradient_norm)};
  const auto first = earliest(mesh(), mine);
  if (!first)
    fail<Inconsistency>(
        "step {}: the sum of what ranks say is not finite arrived wrongly: no rank has such a number; parameters are "
        "unchanged",
        step);
  fail<Inconsistency>("{}{}; parameters are unchanged", first->text,
                      first->rank ? fmt::format(" on rank {}", first->rank) : "");
}

/// Part of the step, so that a dry run counts it.
bool TrainingRun::any_rank(bool here) const {
  const PlainTensors guard;
  const auto flag = at::full({}, here ? 1 : 0, at::dtype(at::kLong).device(world_->shard_device()));
  const Placements sums(static_cast<size_t>(mesh().axis_count()), Placement::partial());
  const auto sum = whole(from_shards(Shards(mesh().local_count(), flag), Layout(mesh(), sums), {}, at::kLong));
  return !options_.meta && gather(sum).item<int64_t>() > 0;
}

at::Tensor TrainingRun::whole(const at::Tensor& scalar) const {
  return redistribute_values(scalar, Layout::replicated(layout_of(scalar).mesh()), "whole");
}

void TrainingRun::update(const std::vector<at::Tensor>& gradients, std::vector<StepScalar>& scalars) {
  UpdatedParts parts(state_, gradients);
  add_measured_root(*optimizer_, parts.state(), gradients, scalars);
  const PhaseScope phase(Phase::kOptimizer);
  const at::NoGradGuard no_grad;
  const on_gpu::StateScope state;
  size_t next = 0;
  for (const auto& entry : parts.state()) {
    if (!entry.trainable) continue;
    const auto& gradient = gradients[next++];
    if (layout_of(entry.value).mesh().local_count() == 0) continue;  // another stage's, in other processes
    const ModuleScope scope(entry.name);
    optimizer_->update(entry, gradient, scalars);
  }
  on_gpu::wait_for_state();
  parts.give_back(job_.parallelism.data_parallel_bucket_cap_mb << 20);
  tell_updates();
  stages_->balance_experts();
}

void TrainingRun::tell_updates() const {
  if (!update_callback_) return;
  for (const auto& entry : state_) {
    const ModuleScope scope(entry.name);
    if (entry.trainable && layout_of(entry.value).mesh().local_count() > 0) update_callback_(entry);
  }
}

void TrainingRun::report(const StepResult& result) {
  if (!listener_) return;
  auto scalars = result.scalars;
  scalars.insert(
      scalars.end(),
      {{"valid_tokens", result.valid_tokens}, {"loss", result.loss}, {"gradient_norm", result.gradient_norm}});
  listener_->end_step(scalars);
}

}  // namespace lockstep::trainer

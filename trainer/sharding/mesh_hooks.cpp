#include "trainer/sharding/mesh_hooks.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/attention/balanced_attention.h"
#include "trainer/attention/ring_attention.h"
#include "trainer/job/mesh_degrees.h"
#include "trainer/sharding/activation_checkpoint.h"

namespace lockstep::trainer {

c10::ScalarType compute_dtype(const Job& job) {
  return job.training.mixed_precision_param == "bfloat16" ? c10::kBFloat16 : c10::kFloat;
}

namespace {

using Blocks = std::vector<models::Module*>;

std::optional<KeptMaps> kept_maps(const ActivationCheckpointSection& settings) {
  if (settings.mode != "selective") return std::nullopt;
  if (settings.selective_ac_option == kChoosesOps) return KeptMaps::kEverySecond;
  return settings.selective_ac_option == kKeepsMaps ? std::optional(KeptMaps::kAll) : std::nullopt;
}

/// The share of the other layers is the budget at most; evenly spread, as all layers are alike.
std::set<const models::Module*> recomputed_by_budget(double budget, const Blocks& blocks) {
  std::set<const models::Module*> chosen;
  const auto layers = static_cast<int64_t>(blocks.size()) - 2;
  const auto kept = static_cast<int64_t>(std::floor(budget * static_cast<double>(layers) + 1e-9));
  for (int64_t layer = 0; layer < layers; ++layer)
    if ((layer + 1) * kept / layers == layer * kept / layers) chosen.insert(blocks[static_cast<size_t>(layer + 1)]);
  return chosen;
}

std::set<const models::Module*> recomputed(const ActivationCheckpointSection& settings, const Blocks& blocks) {
  std::set<const models::Module*> chosen;
  if (settings.mode == "none") return chosen;
  if (settings.mode == "memory_budget") return recomputed_by_budget(settings.memory_budget, blocks);
  const size_t every =
      settings.mode == "selective" && !kept_maps(settings) ? std::stoul(settings.selective_ac_option) : 1;
  for (size_t layer = every; layer + 1 < blocks.size(); layer += every) chosen.insert(blocks[layer]);
  return chosen;
}

std::set<const models::Module*> staying_gathered(const std::string& reshard, const Blocks& blocks) {
  if (reshard == "always" || blocks.empty()) return {};
  return {reshard == "never" ? blocks.begin() : blocks.end() - 1, blocks.end()};
}

constexpr int kHeads = 1, kLength = 2;  // of what attention takes

/// Of [batch, heads, length, size]; who cut the sequence cuts what `placement` says.
at::Tensor with_whole_sequences(const at::Tensor& x, const Placement& placement) {
  auto layout = layout_of(x);
  const auto cutters = layout.cutters(kLength);
  for (const int axis : cutters) layout = layout.with(axis, placement);
  return cutters.empty() ? x : redistribute(x, layout);
}

at::Tensor whole_sequences(const at::Tensor& x) { return with_whole_sequences(x, Placement::replicate()); }

/// `unit`: heads that stay together.
at::Tensor in_heads(const at::Tensor& x, int64_t unit) {
  return with_whole_sequences(x, Placement::shard(kHeads, unit));
}

}  // namespace

BlockOptions block_options(const Job& job, models::Model& model) {
  const auto blocks = model.blocks();
  return {compute_dtype(job),
          staying_gathered(job.parallelism.fsdp_reshard_after_forward, blocks),
          recomputed(job.activation_checkpoint, blocks),
          kept_maps(job.activation_checkpoint),
          job.float8.precompute_float8_dynamic_scale_for_fsdp,
          job.parallelism.context_parallel_rotate_method,
          job.parallelism.context_parallel_load_balancer == kHeadTail,
          job.parallelism.data_parallel_bucket_cap_mb << 20,
          job.parallelism.shard_optimizer_state,
          blocks.empty() ? nullptr : blocks.back()};
}

MeshHooks::MeshHooks(ShardingPlan plan, BlockOptions options) : plan_(std::move(plan)), options_(std::move(options)) {}

at::Tensor MeshHooks::annotate(const at::Tensor& tensor, std::string_view axes) {
  auto& layouts = activation_layouts_[tensor.sizes().vec()];
  auto found = layouts.find(axes);
  if (found == layouts.end()) found = layouts.emplace(std::string(axes), plan_.activation(tensor.sizes(), axes)).first;
  return redistribute(tensor, found->second);
}

/// Of cut sequences keys and values are gathered, or go round, or all three are cut into heads instead (Jacobs et al.,
/// "DeepSpeed Ulysses", 2023). What follows a cache has keys of its own.
at::Tensor MeshHooks::attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             const Attention& attention) {
  const auto& method = options_.rotate_method;
  const bool is_cut = !layout_of(query).cutters(kLength).empty();
  const AttentionOptions with{attention.places, attention.dropout};
  if (is_cut && !cache_ && method == kRing) return ring_attention(query, key, value, with, options_.balances_attention);
  if (is_cut && !cache_ && method != kUlysses && options_.balances_attention)
    return balanced_attention(query, key, value, with);
  if (!is_cut || cache_ || method != kUlysses)
    return attention.run(query, whole_sequences(key), whole_sequences(value));
  const int64_t group = key.size(1) > 0 ? query.size(1) / key.size(1) : 1;
  const auto mixed = attention.run(in_heads(query, group), in_heads(key, 1), in_heads(value, 1));
  return redistribute(mixed, layout_of(query));
}

/// Under canonical numerics every further read is a use of its own: gradients of two reads are not added before the
/// step's samples are.
at::Tensor MeshHooks::use(const models::Parameter& parameter) {
  if (parameter.is_buffer()) return parameter.tensor();
  const auto found = gathered_.find(&parameter);
  const bool shares = !plan_.mesh().world().canonical();
  if (found != gathered_.end() && (shares || !std::exchange(found->second.is_read, true))) return found->second.tensor;
  return gather({const_cast<models::Parameter*>(&parameter)}).tensors()[0];
}

at::Tensor MeshHooks::constant(const at::Tensor& table) {
  auto& [kept, placed] = constants_[{table.const_data_ptr(), table.sizes().vec()}];
  if (!placed.defined()) kept = table, placed = distribute(table, Layout::replicated(plan_.mesh()));
  return placed;
}

void MeshHooks::balance(const models::Parameter& bias, const at::Tensor& counts, double rate) {
  balance_.add(bias, counts, rate);
}

at::Tensor MeshHooks::with_loss(const at::Tensor& x, const at::Tensor& losses) {
  return with_gradient_of(x, annotate(losses, "batch"), 1 / static_cast<double>(options_.sequences));
}

at::Tensor MeshHooks::run_block(models::Module& block, const std::function<at::Tensor(const at::Tensor&)>& forward,
                                const at::Tensor& input) {
  const auto run = [this, &block, forward](const at::Tensor& x) { return run_gathered(block, forward, x); };
  return options_.recompute.contains(&block) && at::GradMode::is_enabled() ? checkpointed(run, input, options_.kept)
                                                                           : run(input);
}

/// What computes in float32 inside of a block shows in no other; logits may.
void MeshHooks::require_compute_type(const models::Module& block, const std::vector<models::Parameter*>& parameters,
                                     const at::Tensor& output) const {
  const bool has_float32 =
      std::ranges::any_of(parameters, [](const auto* each) { return each->computed_in_float32(); });
  if (!has_float32 || &block == options_.last_block || output.scalar_type() == options_.compute_dtype) return;
  fail<BadInput>(
      "training.mixed_precision_float32: block {} hands on {}, not the model's {}: its modules do not give back the "
      "type "
      "that they take (models::given_as). Choose patterns of other parameters.",
      block.path(), c10::toString(output.scalar_type()), c10::toString(options_.compute_dtype));
}

at::Tensor MeshHooks::run_gathered(const models::Module& block,
                                   const std::function<at::Tensor(const at::Tensor&)>& forward,
                                   const at::Tensor& input) {
  auto parameters = block.parameters();
  std::erase_if(parameters, [](const auto* parameter) { return parameter->is_buffer(); });
  auto bucket = gather(parameters, block.path());
  for (size_t p = 0; p < parameters.size(); ++p) gathered_[parameters[p]] = {bucket.tensors()[p]};
  auto output = forward(input);
  require_compute_type(block, parameters, output);
  for (const auto* parameter : parameters) gathered_.erase(parameter);
  if (!options_.stay_gathered.contains(&block) && plan_.mesh().find_axis(axis::kShard) >= 0) bucket.evict();
  return output;
}

GatheredParameters MeshHooks::gather(const std::vector<models::Parameter*>& parameters, std::string_view block) const {
  std::vector<at::Tensor> tensors;
  std::vector<Layout> layouts;
  std::vector<c10::ScalarType> types;
  std::vector<bool> float8;
  for (const auto* parameter : parameters) {
    types.push_back(parameter->computed_in_float32() ? c10::kFloat : options_.compute_dtype);
    float8.push_back(parameter->gathered_as_float8());
    tensors.push_back(options_.leaf ? options_.leaf(*parameter) : parameter->tensor());
    layouts.push_back(plan_.computing(*parameter));
  }
  const ModuleScope scope(block);  // after leaf(): a leaf is of the module that reads it
  GatheredParameters gathered(tensors, {layouts, types, float8, options_.float8_scales_at_once}, gather_order_,
                              options_.gradient_taker);
  if (split_ && at::GradMode::is_enabled()) gathered.cut(*split_);
  return gathered;
}

}  // namespace lockstep::trainer

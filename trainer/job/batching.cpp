#include "trainer/job/batching.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/mesh_text.h"
#include "trainer/job/expert_degrees.h"
#include "trainer/job/optimizer_settings.h"

namespace lockstep::trainer {
namespace {

int64_t rest_of_the_ranks(MeshDegrees degrees, const Launch& launch, bool is_elastic) {
  if (launch.simulated) return 1;
  degrees.dp_shard = 1;
  if (is_elastic) return std::max<int64_t>(launch.world / degrees.ranks(), 1);
  if (launch.world % degrees.ranks() != 0)
    fail<BadInput>(
        "parallelism.data_parallel_shard_degree = -1 cannot be resolved: {} ranks are no multiple of {} ({}).",
        launch.world, degrees.ranks(), degrees.text());
  return launch.world / degrees.ranks();
}

MeshDegrees degrees_of(const ParallelismSection& parallelism) {
  MeshDegrees degrees;
  for (const auto& axis : MeshDegrees::all()) degrees.*axis.size = parallelism.*axis.degree;
  return degrees;
}

int64_t resolved_global_batch(const TrainingSection& training, const MeshDegrees& mesh) {
  const auto per_microbatch = training.local_batch_size * mesh.data_parallel();
  if (training.global_batch_size == -1) return per_microbatch;
  if (training.global_batch_size % per_microbatch != 0)
    fail<BadInput>(
        "training.global_batch_size {} is no multiple of training.local_batch_size {} x data-parallel degree {} = {}.",
        training.global_batch_size, training.local_batch_size, mesh.data_parallel(), per_microbatch);
  return training.global_batch_size;
}

void require_device_offered(const Job& job, const Launch& launch) {
  if (job.training.device == "cuda" && job.parallelism.pipeline_parallel_degree > 1 && !launch.simulated)
    fail<BadInput>(
        "training.device \"cuda\" in several processes carries no transfers between stages yet: "
        "parallelism.pipeline_parallel_degree must be 1.");
}

void require_canonical_on_gpu(const Job& job) {
  if (job.training.device == "cuda" && job.numerics.is_canonical() && job.model.name == "moe")
    fail<BadInput>(
        "training.device \"cuda\" has no canonical numerics of experts yet: set numerics.mode = \"native\", or "
        "training.device = \"cpu\".");
}

void require_ring_offered(const Job& job, const Launch& launch) {
  if (job.parallelism.context_parallel_degree == 1) return;
  const bool is_ring = job.parallelism.context_parallel_rotate_method == kRing;
  const bool is_balanced = job.parallelism.context_parallel_load_balancer == kHeadTail &&
                           job.parallelism.context_parallel_rotate_method != kUlysses;
  if (job.training.device == "cuda" && !launch.simulated && (is_ring || is_balanced))
    fail<BadInput>(
        "training.device \"cuda\" in several processes carries no transfers between parts of a sequence yet: "
        "parallelism.context_parallel_rotate_method \"{}\" must be allgather or {}, and context_parallel_load_balancer "
        "empty.",
        job.parallelism.context_parallel_rotate_method, kUlysses);
}

void require_levels_offered(const Job& job) {
  if (job.numerics.rounded_levels == 0) return;
  if (!job.numerics.is_canonical())
    fail<BadInput>("numerics.rounded_levels {} is of canonical numerics; numerics.mode is \"{}\".",
                   job.numerics.rounded_levels, job.numerics.mode);
  if (job.training.mixed_precision_param != "bfloat16")
    fail<BadInput>(
        "numerics.rounded_levels {} rounds sums of 16-bit products; training.mixed_precision_param is \"{}\", choose "
        "\"bfloat16\" or rounded_levels 0.",
        job.numerics.rounded_levels, job.training.mixed_precision_param);
}

void require_one_converter(const Job& job) {
  const auto& converters = job.model.converters;
  if (converters.size() > 1)
    fail<BadInput>("model.converters has {}; a linear map is quantised in one way, choose one of them.",
                   fmt::join(converters, " and "));
  if (converters.empty() && job.quantize.rotated_block != 0)
    fail<BadInput>("quantize.rotated_block {} turns factors of quantised linear maps; model.converters names none.",
                   job.quantize.rotated_block);
}

void require_gather_offered(const Float8Section& settings, int64_t rotated_block) {
  if (settings.precompute_float8_dynamic_scale_for_fsdp && !settings.enable_fsdp_float8_all_gather)
    fail<BadInput>(
        "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp is about weights that are gathered in float8; "
        "set enable_fsdp_float8_all_gather, too, or leave it out.");
  if (!settings.enable_fsdp_float8_all_gather) return;
  if (settings.recipe_name != "tensorwise")
    fail<BadInput>(
        "quantize.linear.float8.enable_fsdp_float8_all_gather needs recipe_name \"tensorwise\", not \"{}\": the two "
        "products of a weight have scales of their own.",
        settings.recipe_name);
  if (rotated_block != 0)
    fail<BadInput>(
        "quantize.linear.float8.enable_fsdp_float8_all_gather and quantize.rotated_block {}: the two products of a "
        "weight turn it in two ways. Leave one out.",
        rotated_block);
}

/// Sections of a converter that a job does not have say nothing, as in torchtitan.
void require_quantization_offered(const Job& job) {
  require_one_converter(job);
  if (job.model.converts_by(kFloat8Converter)) require_gather_offered(job.float8, job.quantize.rotated_block);
}

void require_data_fit(const Job& job) {
  const auto length = job.validation.seq_len.value_or(job.training.seq_len);
  if (length > job.training.seq_len)
    fail<BadInput>("validation.seq_len {} is longer than training.seq_len {}: the model is built for that.", length,
                   job.training.seq_len);
}

void require_loss_fits(const Job& job) {
  const auto& training = job.training;
  const bool prefers = training.loss == kPreferenceLoss;
  if (prefers != (training.dataset == "preferences"))
    fail<BadInput>("training.loss \"{}\" does not learn from training.dataset \"{}\": dpo and preferences go together.",
                   training.loss, training.dataset);
  if (job.validation.enable && job.validation.dataset == "preferences")
    fail<BadInput>("validation.dataset \"preferences\": validation tells the loss of tokens; name conversations.");
  if (!prefers && std::abs(training.dpo_beta - TrainingSection{}.dpo_beta) > 0)
    fail<BadInput>("training.dpo_beta is of training.loss \"dpo\"; it is \"{}\".", training.loss);
  if (prefers && !job.lora.enabled())
    fail<BadInput>("training.loss \"dpo\" needs lora.rank: what the model began as is the model without its changes.");
}

/// Both conversations of a pair are of one rank and one microbatch.
void require_whole_pairs(const Job& job, int64_t local, const MeshDegrees& mesh) {
  if (job.training.loss == kPreferenceLoss && local % 2 != 0)
    fail<BadInput>(
        "training.loss \"dpo\": mesh {} has {} samples of the global batch of {} to a rank and microbatch; pairs need "
        "an even number. Choose other training.global_batch_size and local_batch_size{}.",
        mesh.text(), local, job.training.global_batch_size,
        mesh.pp > 1 ? ", or parallelism.pipeline_parallel_microbatch_size" : "");
}

/// The batch must not depend on how many ranks happen to be there.
void require_batch_of_elastic(const Job& job) {
  if (job.parallelism.elastic && job.parallelism.data_parallel_shard_degree == -1 &&
      job.training.global_batch_size == -1)
    fail<BadInput>(
        "parallelism.elastic with parallelism.data_parallel_shard_degree = -1 needs training.global_batch_size: -1 "
        "would be another batch with each number of ranks. Give one of the two.");
}

bool is_on_other_ranks(const MeshDegrees& mesh, const Launch& launch) {
  return !launch.simulated && mesh.ranks() != launch.world;
}

/// A job whose global batch is resolved, on what there is.
Job on_largest_mesh(Job job, int64_t ranks) {
  const auto mesh = mesh_of(job);
  const auto found = largest_mesh(mesh, job.training.global_batch_size, ranks);
  if (!found)
    fail<BadInput>(
        "mesh {} needs {} ranks, this launch has {}: too few for any mesh with smaller data-parallel degrees. Start {} "
        "ranks at least.",
        mesh.text(), mesh.ranks(), ranks, mesh.ranks() / mesh.data_parallel());
  set_mesh(job, *found);
  return job;
}

/// The sizes named are such that the job's own mesh divides, too.
void require_even(const Job& job, const MeshDegrees& mesh) {
  const auto global = job.training.global_batch_size, groups = mesh.data_parallel();
  if (global % groups == 0) return;
  const auto step = std::lcm(groups, job.training.local_batch_size * mesh_of(job).data_parallel());
  const auto less = global / step * step;
  fail<BadInput>(
      "mesh {}: the global batch of {} samples does not divide over {} data-parallel ranks; choose "
      "training.global_batch_size {}{}, or other degrees.",
      mesh.text(), global, groups, less > 0 ? fmt::format("{} or ", less) : "", less + step);
}

/// The way out that is named is the job's batch in one microbatch, on this mesh.
void require_expert_sums(const Job& job, const MeshDegrees& mesh, int64_t rows, int64_t microbatches) {
  if (microbatches == 1 || !job.numerics.is_canonical() || expert_sums_take_microbatches(mesh)) return;
  fail<BadInput>(
      "mesh {}: experts are divided over ranks of dp_shard, which is no power of two: {} microbatches would change the "
      "bits of their gradients' sums. Choose one microbatch (on this mesh training.local_batch_size {}{}), experts "
      "divided over tp and cp alone or numerics.mode = \"native\".",
      mesh.text(), microbatches, rows,
      mesh.pp > 1 ? fmt::format(" and parallelism.pipeline_parallel_microbatch_size {}", rows) : "");
}

bool is_power_of_two(int64_t count) { return std::has_single_bit(static_cast<uint64_t>(count)); }

}  // namespace

void require_offered(const Job& job, const Launch& launch) {
  require_device_offered(job, launch);
  require_canonical_on_gpu(job);
  require_ring_offered(job, launch);
}

int64_t largest_microbatch(const Job& job, const MeshDegrees& mesh) {
  const auto local = job.training.local_batch_size;
  return mesh.pp > 1 ? std::min(local, job.parallelism.pipeline_parallel_microbatch_size) : local;
}

Job resolve(Job job, const Launch& launch) {
  auto& parallelism = job.parallelism;
  require_batch_of_elastic(job);
  const bool takes_what_is_there =
      parallelism.elastic && parallelism.data_parallel_shard_degree == -1 && !launch.simulated;
  if (parallelism.data_parallel_shard_degree == -1)
    parallelism.data_parallel_shard_degree = rest_of_the_ranks(degrees_of(parallelism), launch, parallelism.elastic);
  const auto mesh = mesh_of(job);
  require_offered(job, launch);
  require_levels_offered(job);
  require_optimizer_heeds(job);
  require_quantization_offered(job);
  require_float_range(job.optimizer);
  require_data_fit(job);
  require_loss_fits(job);
  if (mesh.ranks() > kMaxRanks) fail<BadInput>("mesh {} has more than {} ranks.", mesh.text(), kMaxRanks);
  const bool is_other = is_on_other_ranks(mesh, launch);
  if (is_other && !parallelism.elastic)
    fail<BadInput>("mesh {} needs {} ranks, this launch has {}. Change the degrees or start {} ranks.", mesh.text(),
                   mesh.ranks(), launch.world, mesh.ranks());
  if (!takes_what_is_there) job.training.global_batch_size = resolved_global_batch(job.training, mesh);
  return is_other || takes_what_is_there ? on_largest_mesh(std::move(job), launch.world) : job;
}

BatchRows Batching::rows(int64_t microbatch) const {
  const int64_t of_replica = global_batch_size / replicas, run = of_replica / accumulation_steps;
  return {microbatch * run, replicas * run, run, of_replica};
}

int64_t Batching::nodes_per_microbatch() const {
  const int64_t shards = data_parallel / replicas;
  return accumulation_steps == 1 || is_power_of_two(shards) ? 1 : shards;
}

Batching derive_batching(const Job& job, const MeshDegrees& mesh) {
  const auto global = job.training.global_batch_size;
  LOCKSTEP_CHECK(global >= 1, "the job is not resolved");
  const auto groups = mesh.data_parallel();
  require_even(job, mesh);
  require_experts_divide(job, mesh);
  const auto rows = global / groups;
  const auto fits = [rows, any = !job.numerics.is_canonical()](int64_t local) {
    return rows % local == 0 && (any || local == rows || is_power_of_two(local));
  };
  auto local = std::min(largest_microbatch(job, mesh), rows);
  while (local > 1 && !fits(local)) --local;
  require_whole_pairs(job, local, mesh);
  require_expert_sums(job, mesh, rows, rows / local);
  return {global, groups, mesh.dp_replicate, local, rows / local};
}

}  // namespace lockstep::trainer

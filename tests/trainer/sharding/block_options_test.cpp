// Which blocks are recomputed and which stay gathered: torchtitan's choices for the same keys.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/context/world.h"
#include "runtime/redistribution/gather.h"
#include "trainer/sharding/mesh_hooks.h"
#include "trainer/step/model_registry.h"

namespace lockstep::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Paths = std::vector<std::string>;

Job job_of(int64_t layers, const char* mode = "none", const char* option = "2") {
  Job job;
  job.model.name = "mlp";
  job.model.layers = layers;
  job.activation_checkpoint.mode = mode;
  job.activation_checkpoint.selective_ac_option = option;
  return job;
}

/// The chosen blocks, in the order of their use.
Paths paths_of(const std::set<const models::Module*>& chosen, models::Model& model) {
  Paths paths;
  for (const auto* block : model.blocks())
    if (chosen.contains(block)) paths.push_back(block->path());
  EXPECT_EQ(paths.size(), chosen.size());
  return paths;
}

Paths recomputed(const Job& job) {
  const auto model = make_model(job);
  return paths_of(block_options(job, *model).recompute, *model);
}

std::optional<KeptMaps> kept(const Job& job) { return block_options(job, *make_model(job)).kept; }

Paths staying_gathered(const char* reshard) {
  auto job = job_of(2);
  job.parallelism.fsdp_reshard_after_forward = reshard;
  const auto model = make_model(job);
  return paths_of(block_options(job, *model).stay_gathered, *model);
}

TEST(BlockOptions, RecomputeTheNthOfEveryNLayers) {
  EXPECT_THAT(recomputed(job_of(4, "selective", "1")), ElementsAre("layers.0", "layers.1", "layers.2", "layers.3"));
  EXPECT_THAT(recomputed(job_of(4, "selective", "2")), ElementsAre("layers.1", "layers.3"));
  EXPECT_THAT(recomputed(job_of(4, "selective", "3")), ElementsAre("layers.2"));
  EXPECT_THAT(recomputed(job_of(4, "selective", "5")), IsEmpty());
  EXPECT_THAT(recomputed(job_of(5, "selective", "1")),
              ElementsAre("layers.0", "layers.1", "layers.2", "layers.3", "layers.4"));
  EXPECT_THAT(recomputed(job_of(5, "selective", "2")), ElementsAre("layers.1", "layers.3"));
  EXPECT_THAT(recomputed(job_of(5, "selective", "3")), ElementsAre("layers.2"));
}

TEST(BlockOptions, RecomputeEveryLayerButForSomeOps) {
  EXPECT_THAT(recomputed(job_of(3, "selective", "op")), ElementsAre("layers.0", "layers.1", "layers.2"));
  EXPECT_THAT(recomputed(job_of(3, "selective", "linear")), ElementsAre("layers.0", "layers.1", "layers.2"));
  EXPECT_EQ(kept(job_of(2, "selective", "op")), KeptMaps::kEverySecond);
  EXPECT_EQ(kept(job_of(2, "selective", "linear")), KeptMaps::kAll);
  EXPECT_EQ(kept(job_of(2, "selective", "2")), std::nullopt);
  EXPECT_EQ(kept(job_of(2, "full", "op")), std::nullopt);
}

/// Tables are known by where they lie: as long as one is, no other may lie there.
TEST(MeshHooks, KeepTheTablesThatTheyKnow) {
  const auto degrees = parse_mesh("dp_shard=2");
  World world({.rank_count = 2});
  std::vector<float> memory{1, 2, 3};
  bool is_given_back = false;
  {
    MeshHooks hooks(ShardingPlan(world.mesh(mesh_axes(degrees)), axis_rules(degrees)), {});
    const auto table = [&] {
      return at::from_blob(
          memory.data(), {3}, [&](void*) { is_given_back = true; }, at::kFloat);
    };
    EXPECT_TRUE(at::equal(gather(hooks.constant(table())), at::tensor(memory)));
    EXPECT_FALSE(is_given_back);
  }
  EXPECT_TRUE(is_given_back);
}

TEST(BlockOptions, RecomputeEveryLayerOrNone) {
  EXPECT_THAT(recomputed(job_of(4, "full", "3")), ElementsAre("layers.0", "layers.1", "layers.2", "layers.3"));
  EXPECT_THAT(recomputed(job_of(4, "none", "1")), IsEmpty());
}

Paths recomputed_by_budget(int64_t layers, double budget) {
  auto job = job_of(layers, "memory_budget");
  job.activation_checkpoint.memory_budget = budget;
  return recomputed(job);
}

/// As few layers as the budget allows, evenly spread.
TEST(BlockOptions, RecomputeWhatABudgetDoesNotAllowToKeep) {
  EXPECT_THAT(recomputed_by_budget(4, 1), IsEmpty());
  EXPECT_THAT(recomputed_by_budget(4, 0.99), ElementsAre("layers.0"));
  EXPECT_EQ(recomputed_by_budget(50, 0.58).size(), 21u);  // 0.58 x 50 is below 29 in doubles
  EXPECT_THAT(recomputed_by_budget(4, 0.5), ElementsAre("layers.0", "layers.2"));
  EXPECT_THAT(recomputed_by_budget(4, 0.49), ElementsAre("layers.0", "layers.1", "layers.2"));
  EXPECT_THAT(recomputed_by_budget(5, 0.4), ElementsAre("layers.0", "layers.1", "layers.3"));
  EXPECT_THAT(recomputed_by_budget(2, 0), ElementsAre("layers.0", "layers.1"));
}

TEST(BlockOptions, KeepTheLastBlockGatheredUnlessAlwaysIsSaid) {
  EXPECT_THAT(staying_gathered("default"), ElementsAre("output"));
  EXPECT_THAT(staying_gathered("always"), IsEmpty());
  EXPECT_THAT(staying_gathered("never"), ElementsAre("tok_embeddings", "layers.0", "layers.1", "output"));
}

/// Norm and output, of a Llama.
TEST(BlockOptions, TheLastBlockOfALlamaIsItsHead) {
  auto job = job_of(2);
  job.model.name = "llama3";
  job.training.seq_len = 8;
  const auto model = make_model(job);
  EXPECT_THAT(paths_of(block_options(job, *model).stay_gathered, *model), ElementsAre("head"));
}

}  // namespace
}  // namespace lockstep::trainer

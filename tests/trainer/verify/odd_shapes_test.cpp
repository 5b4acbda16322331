// Jobs of odd shapes: drawn alike everywhere, valid for their meshes, odd, and equal to one device.
#include "trainer/verify/odd_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/small_models.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"
#include "trainer/step/model_registry.h"
#include "trainer/verify/mesh_comparison.h"
#include "trainer/verify/suite_batch.h"

namespace lockstep::trainer {
namespace {

constexpr uint64_t kSeeds = 300;
constexpr const char* kFamilies[] = {"llama3", "gpt2", "mlp"};

Job job_of(const std::string& family) {
  auto job = testing::small_job();
  job.model.name = family;
  return job;
}

/// Several of seven meshes, others for each seed.
std::vector<MeshDegrees> meshes_of(uint64_t seed) {
  const auto all = parse_meshes(
      "tp=2; cp=3; dp_shard=3,tp=7; dp_replicate=2,dp_shard=5; dp_replicate=3,cp=2; dp_shard=7; "
      "dp_replicate=2,dp_shard=2,tp=3");
  std::vector<MeshDegrees> some;
  for (size_t i = 0; i < all.size(); ++i)
    if ((seed >> (i % 8)) % 2 == 1 || i == seed % all.size()) some.push_back(all[i]);
  return some;
}

TEST(OddShapes, AreTheSameEverywhere) {
  const auto job = job_of("llama3");
  const auto meshes = parse_meshes("dp_shard=3; tp=2");
  EXPECT_EQ(text_of(odd_shapes(7, job, meshes)),
            "--model.width 20 --model.heads 2 --model.key_value_heads 2 --model.hidden 4 --model.layers 3 "
            "--model.vocabulary 347 --model.dropout 0.1 --training.seq_len 49 --training.global_batch_size 12 "
            "--training.local_batch_size 4 --activation_checkpoint.mode selective "
            "--activation_checkpoint.selective_ac_option linear --parallelism.fsdp_reshard_after_forward default "
            "--training.mixed_precision_param float32 --parallelism.disable_loss_parallel false "
            "--parallelism.context_parallel_rotate_method ulysses --model.attention_dropout 0.0 "
            "--parallelism.shard_optimizer_state false --parallelism.context_parallel_load_balancer headtail");
  EXPECT_NE(text_of(odd_shapes(7, job, meshes)), text_of(odd_shapes(8, job, meshes)));
}

TEST(OddShapes, FitTheirMeshes) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    for (const auto* family : kFamilies) {
      SCOPED_TRACE(fmt::format("seed {}, {}", seed, family));
      auto asked = job_of(family);
      asked.parallelism.data_parallel_shard_degree = 1 + static_cast<int64_t>(seed % 3);
      const auto meshes = meshes_of(seed);
      const auto drawn = odd_shapes(seed, asked, meshes);
      const auto job = with_settings(asked, drawn);  // resolves: every key is accepted, the batch fits its own mesh
      ASSERT_EQ(text_of(drawn), text_of(odd_shapes(seed, asked, meshes)));
      for (const auto& mesh : meshes) ASSERT_GE(derive_batching(job, mesh).accumulation_steps, 1) << mesh.text();
      ASSERT_GE(make_model(job)->vocabulary(), 256) << "a text's bytes are tokens";
      ASSERT_LE(job.training.global_batch_size * job.training.seq_len, std::max<int64_t>(1000, 3 * 420));
    }
}

TEST(OddShapes, OfExpertsOverThreeShardsHaveOneMicrobatch) {
  auto asked = job_of("moe");
  asked.parallelism.data_parallel_shard_degree = 6;
  asked.parallelism.expert_parallel_degree = 3;
  const auto meshes = parse_meshes("dp_replicate=2,dp_shard=3,ep=3; dp_shard=3,ep=3; pp=2,dp_shard=6,ep=2");
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    for (const auto& mesh : meshes)
      ASSERT_EQ(derive_batching(with_settings(asked, odd_shapes(seed, asked, meshes)), mesh).accumulation_steps, 1);
}

/// What each seed asks for is rare in a job that somebody wrote; over seeds nothing is rare.
TEST(OddShapes, AreOftenOdd) {
  std::map<std::string, int> seen;
  const auto meshes = parse_meshes("tp=3; cp=2; dp_shard=3");
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto asked = job_of("llama3");
    const auto job = with_settings(asked, odd_shapes(seed, asked, meshes));
    const auto& model = job.model;
    const auto count = [&](const char* what, bool is) { seen[what] += is; };
    count("width that 8 does not divide", model.width.value() % 8 != 0);
    count("width of several leaves", model.width.value() >= 64);
    count("fewer key-value heads than tp", model.key_value_heads.value() < 3);
    count("key-value heads that tp does not divide", model.key_value_heads.value() % 3 != 0);
    count("groups", model.heads.value() > model.key_value_heads.value());
    count("hidden that tp does not divide", model.hidden.value() % 3 != 0);
    count("odd vocabulary", model.vocabulary.value() % 2 == 1);
    count("dropout", model.dropout.value() > 0);
    count("no dropout", !(model.dropout.value() > 0));
    count("one layer", model.layers.value() == 1);
    count("length that cp does not divide", job.training.seq_len % 2 == 1);
    count("length of several leaves", job.training.seq_len >= 64);
    count("several microbatches", derive_batching(job, meshes[2]).accumulation_steps > 1);
    count("one microbatch", derive_batching(job, meshes[2]).accumulation_steps == 1);
    count("recomputation", job.activation_checkpoint.mode != "none");
    count("bfloat16", job.training.mixed_precision_param == "bfloat16");
    count("float32", job.training.mixed_precision_param == "float32");
    count("float32 beside bfloat16", !job.training.mixed_precision_float32.empty());
  }
  EXPECT_EQ(seen.size(), 18U);
  for (const auto& [what, times] : seen) EXPECT_GE(times, static_cast<int>(kSeeds / 8)) << what;
}

TEST(OddShapes, KeepWhatGoesWithBfloat16) {
  auto asked = job_of("gpt2");
  asked.training.mixed_precision_param = "bfloat16";
  asked.numerics.rounded_levels = 2;
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(with_settings(asked, odd_shapes(seed, asked, {})).training.mixed_precision_param, "bfloat16");
}

TEST(OddShapes, OfMeshesThatShareNoBatchAreRefused) {
  const auto meshes = parse_meshes("dp_shard=1021; dp_shard=1019; dp_shard=1013");
  try {
    odd_shapes(1, job_of("mlp"), meshes);
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "mesh dp_shard=1013: odd shapes would need more than 1048576 samples, as many as all the meshes' "
                 "data-parallel degrees divide; compare these meshes by themselves.");
  }
}

/// Beside one device, every value of two steps.
class OddShapesOnMeshes : public ::testing::TestWithParam<const char*> {
 protected:
  static void expect_equal(const Job& job, const MeshDegrees& mesh) {
    MeshComparison comparison(job, {.mesh = mesh});
    const auto vocabulary = comparison.candidate().model().vocabulary();
    for (int64_t step = 1; step <= 2; ++step) {
      const auto check = comparison.check(step, suite_batch(job, vocabulary, step), 1e-3);
      EXPECT_TRUE(check.agrees()) << mesh.text() << ", step " << step << ": " << check.difference;
    }
  }
};

TEST_P(OddShapesOnMeshes, AreOneDevices) {
  const auto meshes = parse_meshes("tp=3; cp=2; dp_shard=3,tp=2; dp_replicate=2,dp_shard=3");
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    auto asked = job_of(GetParam());
    if (seed == 5) asked.numerics.mode = "native";
    const auto drawn = odd_shapes(seed, asked, meshes);
    SCOPED_TRACE(text_of(drawn));
    for (size_t i = 0; i < meshes.size(); i += 2)
      expect_equal(with_settings(asked, drawn), meshes[(seed + i) % meshes.size()]);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, OddShapesOnMeshes, ::testing::ValuesIn(kFamilies),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace lockstep::trainer

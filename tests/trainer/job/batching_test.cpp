#include "trainer/job/batching.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "runtime/kernels/sums/sum_tree.h"

namespace lockstep::trainer {
namespace {

template <class Action>
std::string problem(const Action& action) {
  try {
    action();
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

Job job_of(int64_t replicate, int64_t shard, int64_t tp, int64_t local, int64_t global) {
  Job job;
  job.parallelism.data_parallel_replicate_degree = replicate;
  job.parallelism.data_parallel_shard_degree = shard;
  job.parallelism.tensor_parallel_degree = tp;
  job.training.local_batch_size = local;
  job.training.global_batch_size = global;
  return job;
}

constexpr Launch kSimulated{};
constexpr Launch ranks(int64_t world) { return {0, world, false}; }

TEST(Resolve, OpenDegreeIsOneWhenSimulatedAndTheRestOtherwise) {
  EXPECT_EQ(mesh_of(resolve(job_of(1, -1, 2, 1, -1), kSimulated)).text(), "tp=2");
  EXPECT_EQ(mesh_of(resolve(job_of(1, -1, 2, 1, -1), ranks(8))).text(), "dp_shard=4,tp=2");
  EXPECT_EQ(mesh_of(resolve(job_of(2, -1, 2, 1, -1), ranks(8))).text(), "dp_replicate=2,dp_shard=2,tp=2");
}

TEST(Resolve, GlobalBatchComesFromTheJobsOwnMesh) {
  EXPECT_EQ(resolve(job_of(2, 3, 2, 4, -1), kSimulated).training.global_batch_size, 24);
  EXPECT_EQ(resolve(job_of(2, 3, 2, 4, 48), kSimulated).training.global_batch_size, 48);
}

TEST(Resolve, ResolvingTwiceChangesNothing) {
  const auto once = resolve(job_of(1, -1, 2, 4, -1), kSimulated);
  const auto twice = resolve(once, kSimulated);
  EXPECT_EQ(mesh_of(twice), mesh_of(once));
  EXPECT_EQ(twice.training.global_batch_size, once.training.global_batch_size);
}

TEST(Resolve, RefusesWhatDoesNotFitWithTheNumbers) {
  EXPECT_EQ(problem([] { resolve(job_of(1, 3, 2, 1, -1), ranks(4)); }),
            "mesh dp_shard=3,tp=2 needs 6 ranks, this launch has 4. Change the degrees or start 6 ranks.");
  EXPECT_EQ(problem([] { resolve(job_of(1, -1, 3, 1, -1), ranks(4)); }),
            "parallelism.data_parallel_shard_degree = -1 cannot be resolved: 4 ranks are no multiple of 3 (tp=3).");
  EXPECT_EQ(
      problem([] { resolve(job_of(1, 2, 1, 4, 12), kSimulated); }),
      "training.global_batch_size 12 is no multiple of training.local_batch_size 4 x data-parallel degree 2 = 8.");
  EXPECT_EQ(problem([] { resolve(job_of(65536, 65536, 65536, 1, -1), kSimulated); }),
            "mesh dp_replicate=65536,dp_shard=65536,tp=65536 has more than 1048576 ranks.");
  auto pipeline = job_of(1, 1, 1, 1, -1);
  pipeline.parallelism.pipeline_parallel_degree = 2;
  EXPECT_EQ(problem([&] { resolve(pipeline, kSimulated); }), "");
  pipeline.numerics.mode = "native";
  pipeline.training.device = "cuda";
  EXPECT_EQ(problem([&] { resolve(pipeline, kSimulated); }), "");
  EXPECT_EQ(problem([&] {
              resolve(pipeline, {0, 2, false});
            }),
            "training.device \"cuda\" in several processes carries no transfers between stages yet: "
            "parallelism.pipeline_parallel_degree must be 1.");
}

/// A local batch is cut into microbatches of the pipeline's size.
TEST(Batching, OfAPipelineHasItsMicrobatches) {
  auto job = job_of(1, 2, 1, 8, 16);
  job.parallelism.pipeline_parallel_microbatch_size = 2;
  EXPECT_EQ(derive_batching(job, parse_mesh("dp_shard=2")).accumulation_steps, 1);
  EXPECT_EQ(derive_batching(job, parse_mesh("pp=2,dp_shard=2")).accumulation_steps, 4);
  job.parallelism.pipeline_parallel_microbatch_size = 64;
  EXPECT_EQ(derive_batching(job, parse_mesh("pp=2,dp_shard=2")).accumulation_steps, 1);
}

Job elastic(Job job) {
  job.parallelism.elastic = true;
  return job;
}

TEST(Resolve, AnElasticJobTakesTheLargestMeshForWhatIsThere) {
  for (const int64_t world : {1, 2, 3, 5, 8, 11}) {
    const auto job = resolve(elastic(job_of(1, 4, 2, 3, -1)), ranks(world < 2 ? 2 : world));
    EXPECT_EQ(mesh_of(job).text(), world < 4 ? "tp=2" : world < 8 ? "dp_shard=2,tp=2" : "dp_shard=4,tp=2") << world;
    EXPECT_EQ(job.training.global_batch_size, 12) << "of the whole mesh";
    derive_batching(job, mesh_of(job));
  }
  EXPECT_EQ(mesh_of(resolve(elastic(job_of(1, 4, 2, 3, -1)), kSimulated)).text(), "dp_shard=4,tp=2");
}

TEST(Resolve, AnElasticJobWithAnOpenDegreeUsesAllRanksThatDivideItsBatch) {
  EXPECT_EQ(mesh_of(resolve(elastic(job_of(1, -1, 2, 1, 12)), ranks(9))).text(), "dp_shard=4,tp=2");
  EXPECT_EQ(mesh_of(resolve(elastic(job_of(1, -1, 1, 5, 12)), ranks(5))).text(), "dp_shard=4");
  EXPECT_EQ(mesh_of(resolve(elastic(job_of(1, -1, 2, 1, 12)), kSimulated)).text(), "tp=2");
  EXPECT_EQ(problem([] { resolve(elastic(job_of(1, -1, 1, 1, -1)), ranks(3)); }),
            "parallelism.elastic with parallelism.data_parallel_shard_degree = -1 needs training.global_batch_size: -1 "
            "would be another batch with each number of ranks. Give one of the two.");
}

TEST(Resolve, AnElasticJobNeedsTheRanksThatCutItsModel) {
  EXPECT_EQ(problem([] { resolve(elastic(job_of(1, 2, 4, 1, -1)), ranks(3)); }),
            "mesh dp_shard=2,tp=4 needs 8 ranks, this launch has 3: too few for any mesh with smaller data-parallel "
            "degrees. Start 4 ranks at least.");
}

TEST(Resolve, RefusesNumbersThatFloat32CannotHold) {
  const auto message = [](double OptimizerSection::*key, double value) {
    auto job = job_of(1, 1, 1, 1, -1);
    job.optimizer.*key = value;
    return problem([&] { resolve(job, kSimulated); });
  };
  const std::string reason = ", which float32 cannot hold: from 1.2e-38 to 3.4e+38.";
  EXPECT_EQ(message(&OptimizerSection::lr, 1e39), "optimizer.lr is 1e+39" + reason);
  EXPECT_EQ(message(&OptimizerSection::weight_decay, 1e300), "optimizer.weight_decay is 1e+300" + reason);
  EXPECT_EQ(message(&OptimizerSection::eps, 1e-320), "optimizer.eps is 1e-320" + reason);
  EXPECT_EQ(message(&OptimizerSection::eps, 1e39), "optimizer.eps is 1e+39" + reason);
  EXPECT_EQ(message(&OptimizerSection::lr, 0), "");
  EXPECT_EQ(message(&OptimizerSection::lr, 3e38), "");
}

TEST(Resolve, RefusesRoundedLevelsWhereNothingWouldBeRounded) {
  auto job = job_of(1, 1, 2, 4, 8);
  job.numerics.rounded_levels = 1;
  EXPECT_EQ(
      problem([&] { resolve(job, kSimulated); }),
      "numerics.rounded_levels 1 rounds sums of 16-bit products; training.mixed_precision_param is \"float32\", choose "
      "\"bfloat16\" or rounded_levels 0.");
  job.training.mixed_precision_param = "bfloat16";
  EXPECT_EQ(problem([&] { resolve(job, kSimulated); }), "");
  job.numerics.mode = "native";
  EXPECT_EQ(problem([&] { resolve(job, kSimulated); }),
            "numerics.rounded_levels 1 is of canonical numerics; numerics.mode is \"native\".");
}

TEST(DeriveBatching, KeepsTheGlobalBatchOnAnotherMesh) {
  const auto job = resolve(job_of(1, 2, 2, 4, 16), kSimulated);
  const auto batching = [&](const char* mesh) {
    const auto b = derive_batching(job, parse_mesh(mesh));
    return std::array{b.data_parallel, b.local_batch_size, b.accumulation_steps};
  };
  EXPECT_EQ(batching("dp_shard=2,tp=2"), (std::array<int64_t, 3>{2, 4, 2}));
  EXPECT_EQ(batching("one device"), (std::array<int64_t, 3>{1, 4, 4}));
  EXPECT_EQ(batching("dp_shard=8"), (std::array<int64_t, 3>{8, 2, 1}));
  EXPECT_EQ(batching("tp=4"), (std::array<int64_t, 3>{1, 4, 4}));
}

TEST(DeriveBatching, TakesTheLargestLocalBatchThatDivides) {
  auto job = resolve(job_of(1, 1, 1, 4, 12), kSimulated);
  job.numerics.mode = "native";
  const auto batching = derive_batching(job, parse_mesh("dp_shard=2"));
  EXPECT_EQ(batching.local_batch_size, 3);
  EXPECT_EQ(batching.accumulation_steps, 2);
}

TEST(DeriveBatching, CanonicalMicrobatchesAreCompleteSubtreesOfTheSamplesOnEachRank) {
  const auto job = resolve(job_of(1, 1, 1, 4, 12), kSimulated);
  const auto two = derive_batching(job, parse_mesh("dp_shard=2"));  // 2 x 2 of 12 samples each, not 2 x 3
  EXPECT_EQ(two.local_batch_size, 2);
  EXPECT_EQ(two.accumulation_steps, 3);
  EXPECT_EQ(derive_batching(job, parse_mesh("dp_shard=3")).accumulation_steps, 1);  // all samples at once
  const auto three = derive_batching(resolve(job_of(1, 1, 1, 3, 18), kSimulated), parse_mesh("dp_shard=3"));
  EXPECT_EQ(three.local_batch_size, 2);  // of 6
  EXPECT_EQ(three.accumulation_steps, 3);
}

TEST(DeriveBatching, MicrobatchesOfUnevenShardsAreKeptAsANodeOfEachRank) {
  const auto nodes = [](const char* mesh, int64_t local) {
    return derive_batching(resolve(job_of(1, 1, 1, local, 48), kSimulated), parse_mesh(mesh)).nodes_per_microbatch();
  };
  EXPECT_EQ(nodes("dp_shard=3", 4), 3);
  EXPECT_EQ(nodes("dp_shard=3", 16), 1) << "one microbatch";
  EXPECT_EQ(nodes("dp_shard=6,tp=2", 2), 6);
  EXPECT_EQ(nodes("dp_replicate=2,dp_shard=3", 1), 3);
  EXPECT_EQ(nodes("dp_replicate=3,dp_shard=4", 1), 1) << "replicas are reduced once a step";
  EXPECT_EQ(nodes("dp_shard=4", 1), 1);
}

RC_GTEST_PROP(DeriveBatching, WhatARankHasOfAMicrobatchIsOneNodeOfTheStepsTree, ()) {
  const auto degree = [] { return *rc::gen::inRange<int64_t>(1, 9); };
  MeshDegrees mesh;
  mesh.dp_replicate = degree(), mesh.dp_shard = degree();
  const auto rows = *rc::gen::inRange<int64_t>(1, 40);
  const auto job = resolve(job_of(1, 1, 1, 1, mesh.data_parallel() * rows), kSimulated);
  auto asked = job;
  asked.training.local_batch_size = *rc::gen::inRange<int64_t>(1, 50);
  const auto batching = derive_batching(asked, mesh);
  RC_ASSERT(batching.local_batch_size <= asked.training.local_batch_size);
  RC_ASSERT(batching.local_batch_size * batching.accumulation_steps == rows);
  if (batching.accumulation_steps == 1) return;
  const auto tree = SumTree::over_samples(batching.global_batch_size);
  const auto microbatch = *rc::gen::inRange<int64_t>(0, batching.accumulation_steps);
  const auto rank = *rc::gen::inRange<int64_t>(0, mesh.data_parallel());
  const auto here = batching.rows(microbatch).runs({rank * batching.local_batch_size, batching.local_batch_size});
  RC_ASSERT(here.size() == 1U);
  RC_ASSERT(cover(tree, here[0].rows.start + here[0].shift, here[0].rows.length).size() == 1U);
}

TEST(DeriveBatching, AMicrobatchIsARunOfEachReplica) {
  const auto job = resolve(job_of(2, 2, 1, 1, 16), kSimulated);
  const auto batching = derive_batching(job, parse_mesh("dp_replicate=2,dp_shard=2"));
  ASSERT_EQ(batching.accumulation_steps, 4);
  std::vector<int64_t> rows;
  for (const auto& run : batching.rows(1).runs({1, 3}))
    for (int64_t row = 0; row < run.rows.length; ++row) rows.push_back(run.rows.start + row + run.shift);
  EXPECT_EQ(rows, (std::vector<int64_t>{3, 10, 11}));  // of {2, 3} and {10, 11}
}

TEST(DeriveBatching, CanonicalReplicasNeedSubtreesOfTheirOwnAlone) {
  const auto batching =
      derive_batching(resolve(job_of(3, 2, 1, 1, 12), kSimulated), parse_mesh("dp_replicate=3,dp_shard=2"));
  EXPECT_EQ(batching.accumulation_steps, 2);
}

TEST(DeriveBatching, RefusesAMeshThatTheBatchDoesNotDivideOver) {
  const auto job = resolve(job_of(1, 1, 1, 4, 16), kSimulated);
  EXPECT_EQ(problem([&] { derive_batching(job, parse_mesh("dp_shard=3")); }),
            "mesh dp_shard=3: the global batch of 16 samples does not divide over 3 data-parallel ranks; choose "
            "training.global_batch_size 12 or 24, or other degrees.");
  EXPECT_EQ(problem([&] { derive_batching(job, parse_mesh("dp_shard=32")); }),
            "mesh dp_shard=32: the global batch of 16 samples does not divide over 32 data-parallel ranks; choose "
            "training.global_batch_size 32, or other degrees.");
}

RC_GTEST_PROP(DeriveBatching, CoversTheGlobalBatchExactly, ()) {
  const auto job = resolve(job_of(1, 1, 1, *rc::gen::inRange(1, 50), -1), kSimulated);
  MeshDegrees mesh;
  mesh.dp_shard = *rc::gen::inRange(1, 20);
  RC_PRE(job.training.global_batch_size % mesh.dp_shard == 0);
  const auto batching = derive_batching(job, mesh);
  RC_ASSERT(batching.data_parallel * batching.local_batch_size * batching.accumulation_steps ==
            job.training.global_batch_size);
  RC_ASSERT(batching.local_batch_size <= job.training.local_batch_size);
}

TEST(ParseMesh, ReadsWhatTextPrints) {
  const auto meshes = parse_meshes("dp_shard=2,tp=2; tp=4;one device ; tp = 2 , dp_replicate=3");
  ASSERT_EQ(meshes.size(), 4U);
  EXPECT_EQ(meshes[0].text(), "dp_shard=2,tp=2");
  EXPECT_EQ(meshes[1].text(), "tp=4");
  EXPECT_EQ(meshes[2].text(), "one device");
  EXPECT_EQ(meshes[3].text(), "dp_replicate=3,tp=2");
  EXPECT_EQ(meshes[3].ranks(), 6);
}

TEST(ParseMesh, NamesWhatIsWrong) {
  const auto message = [](const char* text) { return problem([&] { parse_meshes(text); }); };
  EXPECT_EQ(message("dp_shrd=2"),
            "mesh \"dp_shrd=2\": dp_shrd is not an axis. Did you mean dp_shard? Axes are pp, "
            "dp_replicate, dp_shard, cp, tp, ep, etp.");
  EXPECT_EQ(message("tp=2,tp=3"), "mesh \"tp=2,tp=3\": tp is given twice.");
  EXPECT_EQ(message("tp=0"), "mesh \"tp=0\": the size of tp is \"0\", must be an integer of at least 1.");
  EXPECT_EQ(message("tp=two"), "mesh \"tp=two\": the size of tp is \"two\", must be an integer of at least 1.");
  EXPECT_EQ(message("tp"), "mesh \"tp\": \"tp\" is not of the form axis=size.");
  EXPECT_EQ(message("tp=2;;"), "a mesh is empty; expected axis=size pairs such as \"dp_shard=2,tp=2\".");
  EXPECT_EQ(message(""), "a mesh is empty; expected axis=size pairs such as \"dp_shard=2,tp=2\".");
  EXPECT_EQ(message("tp=1048576,dp_shard=2"), "mesh \"tp=1048576,dp_shard=2\" has more than 1048576 ranks.");
}

TEST(Resolve, QuantizesInOneWayThatIsOffered) {
  const auto refused = [](auto set) {
    auto job = job_of(1, 1, 1, 1, -1);
    set(job);
    return problem([&] { resolve(job, kSimulated); });
  };
  const std::string float8(kFloat8Converter), mx(kMxConverter);
  EXPECT_EQ(refused([&](Job& job) { job.model.converters = {float8}; }), "");
  EXPECT_EQ(
      refused([&](Job& job) { job.float8.enable_fsdp_float8_all_gather = true, job.float8.recipe_name = "rowwise"; }),
      "");  // says nothing without a converter
  EXPECT_EQ(refused([&](Job& job) {
              job.model.converters = {float8, mx};
            }),
            "model.converters has quantize.linear.float8 and quantize.linear.mx; a linear map is quantised in one way, "
            "choose one of them.");
  EXPECT_EQ(refused([&](Job& job) { job.quantize.rotated_block = 32; }),
            "quantize.rotated_block 32 turns factors of quantised linear maps; model.converters names none.");
  EXPECT_EQ(
      refused([&](Job& job) {
        job.model.converters = {float8};
        job.float8.enable_fsdp_float8_all_gather = true, job.float8.recipe_name = "rowwise";
      }),
      "quantize.linear.float8.enable_fsdp_float8_all_gather needs recipe_name \"tensorwise\", not \"rowwise\": the "
      "two products of a weight have scales of their own.");
  EXPECT_EQ(
      refused([&](Job& job) {
        job.model.converters = {float8};
        job.float8.precompute_float8_dynamic_scale_for_fsdp = true;
      }),
      "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp is about weights that are gathered in float8; "
      "set enable_fsdp_float8_all_gather, too, or leave it out.");
  EXPECT_EQ(refused([&](Job& job) {
              job.model.converters = {float8};
              job.float8.enable_fsdp_float8_all_gather = true, job.quantize.rotated_block = 32;
            }),
            "quantize.linear.float8.enable_fsdp_float8_all_gather and quantize.rotated_block 32: the two products of a "
            "weight turn it in two ways. Leave one out.");
}

}  // namespace
}  // namespace lockstep::trainer

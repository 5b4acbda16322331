#include "trainer/job/expert_degrees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "trainer/job/batching.h"

namespace lockstep::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ExpertDegrees, FoldOverAxesFromTheInnermost) {
  EXPECT_THAT(expert_axes(parse_mesh("dp_shard=2,cp=3,tp=5")), IsEmpty());
  EXPECT_THAT(expert_axes(parse_mesh("dp_shard=2,cp=3,tp=5,ep=5")), ElementsAre("tp"));
  EXPECT_THAT(expert_axes(parse_mesh("dp_shard=2,cp=3,tp=5,ep=15")), ElementsAre("tp", "cp"));
  EXPECT_THAT(expert_axes(parse_mesh("dp_shard=2,cp=3,tp=5,ep=30")), ElementsAre("tp", "cp", "dp_shard"));
  EXPECT_THAT(expert_axes(parse_mesh("dp_shard=2,cp=3,tp=5,ep=3,etp=5")), ElementsAre("cp"));
  EXPECT_THAT(expert_axes(parse_mesh("dp_shard=2,cp=3,tp=5,ep=6,etp=5")), ElementsAre("cp", "dp_shard"));
  EXPECT_THAT(expert_axes(parse_mesh("pp=2,dp_replicate=2,dp_shard=4,ep=4")), ElementsAre("dp_shard"));
}

TEST(ExpertDegrees, TakeAPartOfTheShardAxisWhichIsTwoThen) {
  const auto mesh = parse_mesh("pp=2,dp_shard=6,tp=5,ep=15");
  EXPECT_THAT(expert_axes(mesh), ElementsAre("tp", "dp_shard_in_ep"));
  EXPECT_EQ(shard_part_of_experts(mesh), 3);
  EXPECT_EQ(to_text(mesh_axes(mesh)), "pp=2,dp_shard=2,dp_shard_in_ep=3,tp=5");
  EXPECT_EQ(mesh.text(), "pp=2,dp_shard=6,tp=5,ep=15");
  EXPECT_EQ(to_text(mesh_axes(parse_mesh("dp_shard=6,ep=6"))), "dp_shard=6");
  EXPECT_EQ(to_text(mesh_axes(parse_mesh("dp_shard=6,tp=2,ep=2"))), "dp_shard=6,tp=2");
  EXPECT_THAT(expert_degrees(parse_mesh("dp_shard=6,cp=2")), ElementsAre(1, 2, 4, 6, 12));
}

TEST(ExpertDegrees, CutMatricesWhereTheTensorAxisIsNotFolded) {
  EXPECT_FALSE(cuts_matrices_of_experts(parse_mesh("dp_shard=2,ep=2")));
  EXPECT_TRUE(cuts_matrices_of_experts(parse_mesh("tp=2")));
  EXPECT_TRUE(cuts_matrices_of_experts(parse_mesh("dp_shard=2,tp=2,ep=2,etp=2")));
  EXPECT_FALSE(cuts_matrices_of_experts(parse_mesh("dp_shard=2,tp=2,ep=2")));
}

template <class Action>
std::string problem(const Action& action) {
  try {
    action();
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const char* mesh, const char* model = "moe") {
  Job job;
  job.model.name = model;
  return problem([&] { require_experts_divide(job, parse_mesh(mesh)); });
}

TEST(ExpertDegrees, NameTheChoicesWhereNoneFits) {
  EXPECT_EQ(
      refusal("dp_shard=4,tp=2,ep=3"),
      "mesh dp_shard=4,tp=2,ep=3: experts cannot be divided over 3 of its ranks (parallelism.expert_parallel_degree): "
      "over tp (where expert_tensor_parallel_degree is 1), then cp, then dp_shard or a divisor of it. Choose one of 1, "
      "2 (tp), 4 (tp, 2 of dp_shard), 8 (tp, dp_shard).");
  EXPECT_EQ(refusal("dp_shard=2,tp=4,ep=2,etp=2"),
            "mesh dp_shard=2,tp=4,ep=2,etp=2: parallelism.expert_tensor_parallel_degree 2 must be 1 or "
            "parallelism.tensor_parallel_degree 4.");
  EXPECT_EQ(refusal("pp=2,ep=2").substr(0, 42), "mesh pp=2,ep=2: experts cannot be divided ");
}

TEST(ExpertDegrees, AreOfModelsWithExperts) {
  EXPECT_EQ(refusal("dp_shard=2,ep=2", "llama3"),
            "parallelism.expert_parallel_degree 2: model.name \"llama3\" has no experts; leave it out, or choose moe.");
  EXPECT_EQ(refusal("dp_shard=2,ep=2"), "");
  EXPECT_EQ(refusal("dp_shard=2", "llama3"), "");
}

/// The parts of a step's sum that three ranks had together are no subtrees of it.
TEST(ExpertDegrees, OverThreeShardsTakeOneMicrobatch) {
  const auto message = [](const char* mesh, int64_t local, const char* mode = "canonical") -> std::string {
    Job job;
    job.model.name = "moe";
    job.numerics.mode = mode;
    job.training.global_batch_size = 24;
    job.training.local_batch_size = local;
    return problem([&] { derive_batching(job, parse_mesh(mesh)); });
  };
  EXPECT_EQ(
      message("dp_replicate=2,dp_shard=3,ep=3", 2),
      "mesh dp_replicate=2,dp_shard=3,ep=3: experts are divided over ranks of dp_shard, which is no power of two: "
      "2 microbatches would change the bits of their gradients' sums. Choose one microbatch "
      "(on this mesh training.local_batch_size 4), experts divided over tp and cp alone or numerics.mode = "
      "\"native\".");
  EXPECT_THAT(
      message("pp=2,dp_shard=6,ep=2", 4),
      ::testing::HasSubstr(
          "(on this mesh training.local_batch_size 4 and parallelism.pipeline_parallel_microbatch_size 4), experts"));
  EXPECT_EQ(message("dp_replicate=2,dp_shard=3,ep=3", 2, "native"), "");
  EXPECT_EQ(message("dp_replicate=2,dp_shard=3,ep=3", 4), "");
  EXPECT_EQ(message("dp_replicate=2,dp_shard=3,cp=2,ep=2", 2), "");
  EXPECT_EQ(message("dp_replicate=3,dp_shard=2,ep=2", 2), "");
}

/// Fewer data-parallel ranks must still make the degree of experts.
TEST(ExpertDegrees, StayWhereAMeshShrinks) {
  EXPECT_EQ(largest_mesh(parse_mesh("dp_shard=4,tp=2,ep=2"), 8, 5)->text(), "dp_shard=2,tp=2,ep=2");
  EXPECT_EQ(largest_mesh(parse_mesh("dp_replicate=2,dp_shard=2,ep=2"), 8, 3)->text(), "dp_shard=2,ep=2");
  EXPECT_EQ(largest_mesh(parse_mesh("dp_shard=8,ep=2"), 8, 5)->text(), "dp_shard=4,ep=2");
  EXPECT_EQ(largest_mesh(parse_mesh("dp_shard=4,ep=4"), 8, 3), std::nullopt);
}

TEST(ExpertDegrees, AreReadAndPrintedWithAMesh) {
  EXPECT_EQ(parse_mesh("tp=2,ep=4,dp_shard=2").text(), "dp_shard=2,tp=2,ep=4");
  EXPECT_EQ(parse_mesh("dp_shard=2,tp=2,ep=2,etp=2").ranks(), 4);
  Job job;
  set_mesh(job, parse_mesh("dp_shard=2,ep=2"));
  EXPECT_EQ(job.parallelism.expert_parallel_degree, 2);
  EXPECT_EQ(mesh_of(job).text(), "dp_shard=2,ep=2");
}

}  // namespace
}  // namespace lockstep::trainer

// lockstep verify in a process for each rank: what one process says that simulates them, or the same clear error on
// all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/processes/two_ranks.h"
#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* kShort = " --training.steps 2 --verify.steps 2 -q ";
constexpr const char* kTransformer =
    "--model.name llama3 --model.width 16 --model.heads 4 --model.key_value_heads 2 --model.hidden 24 --model.layers 2 "
    "--model.vocabulary 260 ";

class VerifyProcesses : public ::testing::Test {
 protected:
  lockstep::Run launch(int processes, const std::string& more, const std::string& fault = "") const {
    return run_binary(fault.empty() ? LOCKSTEP_BINARY : LOCKSTEP_FAULTY_BINARY,
                      "launch -n " + std::to_string(processes) + " verify " + job_ + kShort + "--json " +
                          folder_.file("many.json") + " " + more,
                      "OMP_NUM_THREADS=1 LOCKSTEP_PLANTED_FAULT='" + fault + "' ");
  }
  lockstep::Run simulate(const std::string& more) const {
    return run_lockstep("verify " + job_ + kShort + "--json " + folder_.file("one.json") + " " + more,
                        "OMP_NUM_THREADS=1 ");
  }
  Json result(const std::string& file) const { return Json::parse(file_content(folder_.file(file))); }

  /// What the two say of each mesh. Each stage of a pipeline sends what it sends; one process sends for all of them.
  /// Compared, as seen and as compared, is an op by each process.
  void expect_equal_verdicts(size_t meshes) const {
    auto many = result("many.json"), one = result("one.json");
    EXPECT_EQ(many.at("processes"), 4);
    EXPECT_EQ(one.at("processes"), 1);
    ASSERT_EQ(many.at("meshes").size(), meshes);
    for (size_t i = 0; i < meshes; ++i) {
      auto &of_many = many.at("meshes")[i], &of_one = one.at("meshes")[i];
      if (of_one.at("mesh").get<std::string>().starts_with("pp="))
        for (auto* row : {&of_many, &of_one}) row->erase("bytes_per_step");
      for (auto* row : {&of_many, &of_one}) row->erase("ops");
      EXPECT_EQ(of_many, of_one);
    }
    EXPECT_EQ(many.at("coverage"), one.at("coverage"));
    EXPECT_EQ(many.at("verdict"), "pass");
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
};

TEST_F(VerifyProcesses, SayWhatOneProcessSays) {
  const auto meshes = std::string(kTransformer) + "--meshes 'dp_shard=4; pp=2,tp=2; dp_replicate=2,cp=2; tp=4'";
  const auto many = launch(4, meshes), one = simulate(meshes);
  ASSERT_EQ(many.code, 0) << many.err << many.out;
  ASSERT_EQ(one.code, 0) << one.err;
  expect_equal_verdicts(4);
  EXPECT_THAT(many.out, AllOf(HasSubstr("2 steps and one on a batch of its own"), HasSubstr("pp=2,tp=2 "),
                              HasSubstr("tp=4: what a rank sends in a step")));
  EXPECT_EQ(many.out.find("2 steps and one"), many.out.rfind("2 steps and one")) << "one of them speaks";
}

TEST_F(VerifyProcesses, SayItUnderNativeNumericsToo) {
  const auto meshes = std::string(kTransformer) + "--numerics.mode native --meshes 'dp_shard=2,tp=2; pp=2,dp_shard=2'";
  const auto many = launch(4, meshes);
  ASSERT_EQ(many.code, 0) << many.err << many.out;
  ASSERT_EQ(simulate(meshes).code, 0);
  for (const auto& row : result("many.json").at("meshes")) {
    EXPECT_EQ(row.at("verdict"), "pass");
    EXPECT_LT(row.at("worst_error_over_bound"), 1);
    EXPECT_GT(row.at("ops").at("compared"), 100);
  }
  EXPECT_EQ(result("many.json").at("coverage"), result("one.json").at("coverage"));
}

TEST_F(VerifyProcesses, CompareOddShapesAndTheJobsOwnMesh) {
  const auto odd = launch(2, "--odd-shapes 3..4");
  ASSERT_EQ(odd.code, 0) << odd.err;
  EXPECT_EQ(result("many.json").at("meshes").size(), 2U);
  EXPECT_EQ(result("many.json").at("odd_shapes").size(), 2U);
  const auto open = launch(4, "--parallelism.data_parallel_shard_degree -1");  // as many as the launch has
  ASSERT_EQ(open.code, 0) << open.err;
  EXPECT_EQ(result("many.json").at("meshes")[0].at("mesh"), "dp_shard=4");
}

/// Rank 1 alone has the fault.
TEST_F(VerifyProcesses, TellWhatOneOfThemSees) {
  const auto found =
      launch(2, "--meshes 'dp_replicate=2; dp_shard=2' --html " + folder_.file("page.html"), "wrong update");
  EXPECT_EQ(found.code, 3) << found.err;
  EXPECT_THAT(found.out,
              AllOf(HasSubstr("dp_replicate=2                    DIFFERS"),
                    HasSubstr("INCONSISTENT  mesh dp_replicate=2, step 2: "), HasSubstr(", seen by rank 1 and not by"),
                    HasSubstr("  op       step 2, microbatch 0, optimizer, tok_embeddings.weight, mesh::adamw"),
                    HasSubstr("  again    lockstep replay --case " + folder_.file("out/case-1.h5"))));
  const auto row = result("many.json").at("meshes")[0];
  EXPECT_EQ(row.at("verdict"), "fail");
  EXPECT_GT(row.at("differing_bits"), 0) << "rank 0 sees none";
  EXPECT_GT(row.at("parameter_max_relative"), 0);
  EXPECT_EQ(row.at("findings")[0].at("case"), folder_.file("out/case-1.h5"));
  EXPECT_EQ(result("many.json").at("verdict"), "fail");
  EXPECT_EQ(result("many.json").at("meshes").size(), 2U) << "the next mesh is compared all the same";
  const auto page = file_content(folder_.file("page.html"));
  EXPECT_THAT(page, AllOf(HasSubstr("dp_replicate=2"), HasSubstr("mesh::adamw")));
}

TEST_F(VerifyProcesses, HaveARankOfEveryMesh) {
  const auto run = launch(4, "--meshes 'dp_shard=4; tp=2'");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("lockstep: mesh tp=2 has 2 ranks, this launch 4 processes: each has one rank of every "
                                 "mesh that is verified. Leave it out, or start one process, which simulates meshes of "
                                 "any size.\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("agrees")));
}

TEST_F(VerifyProcesses, CompareTheSameMeshes) {
  const auto both = "verify " + job_ + kShort + "--comm.init_timeout_seconds 20 --meshes ";
  for (const auto& run : run_two_ranks({both + "dp_shard=2", both + "tp=2"})) {
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err,
                HasSubstr("the processes were not started alike: the meshes to verify is dp_shard=2 on rank 0, "
                          "tp=2 on rank 1."));
  }
}

}  // namespace
}  // namespace lockstep

// What only one of several processes sees, or cannot do, ends all of them alike: exit code and text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class AgreedFindings : public ::testing::Test {
 protected:
  /// Rank 1 of two has the fault.
  lockstep::Run run(const std::string& fault, const std::string& more) const {
    return run_binary(LOCKSTEP_FAULTY_BINARY,
                      "launch -n 2 train " + job_ + " -q --json " + folder_.file("result.json") + " " + more,
                      "OMP_NUM_THREADS=1 LOCKSTEP_PLANTED_FAULT='" + fault + "' ");
  }
  std::vector<int> exits() const {
    std::vector<int> codes;
    const auto result = nlohmann::json::parse(file_content(folder_.file("result.json")));
    for (const auto& rank : result.at("ranks")) codes.push_back(rank.at("exit"));
    return codes;
  }

  static constexpr const char* kReplicas =
      "--parallelism.data_parallel_shard_degree 1 --parallelism.data_parallel_replicate_degree 2 ";
  const std::vector<int> all_inconsistent_{3, 3};
  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
};

TEST_F(AgreedFindings, NoFaultIsNone) {
  const auto fine = run("", std::string(kReplicas) + "--verify");
  EXPECT_EQ(fine.code, 0) << fine.err;
}

TEST_F(AgreedFindings, NoFaultIsNoneUnderNativeNumerics) {
  for (const char* mesh : {"", kReplicas}) {
    const auto fine = run("", std::string(mesh) + "--verify --numerics.mode native");
    EXPECT_EQ(fine.code, 0) << fine.out << fine.err;
    std::filesystem::remove_all(folder_.file("out"));
  }
}

/// In the run that trains alone: not in the two in double beside it.
TEST_F(AgreedFindings, ACollectiveOfTheNativeRun) {
  const auto found = run("wrong reduction of float32", "--verify --numerics.mode native");
  EXPECT_EQ(found.code, 3) << found.out << found.err;
  EXPECT_EQ(exits(), all_inconsistent_);
  EXPECT_THAT(found.out, AllOf(HasSubstr("INCONSISTENT  step 1, mesh dp_shard=2: "),
                               HasSubstr(" times what rounding may do; "), HasSubstr(", reduce_gradients #0\n"),
                               HasSubstr("  kind     reduce_scatter over dp_shard, ranks 0-1\n")));
}

/// Every rank sees it, in what it gathers.
TEST_F(AgreedFindings, AnOpOfOneRank) {
  const auto found = run("wrong update", "--verify --checkpoint.enable true --checkpoint.interval 1");
  EXPECT_EQ(found.code, 3) << found.out << found.err;
  EXPECT_EQ(exits(), all_inconsistent_);
  EXPECT_THAT(
      found.out,
      AllOf(HasSubstr("INCONSISTENT  step 2, mesh dp_shard=2: parameter of tok_embeddings.weight["),
            HasSubstr("  op       step 2, microbatch 0, optimizer, tok_embeddings.weight, mesh::adamw"),
            HasSubstr("  again    lockstep replay --case " + folder_.file("out/case-1.h5") + "\n"),
            HasSubstr("  resume   from " + folder_.file("out/checkpoint/step-1") +
                      " (--checkpoint.load_step 1): the last checkpoint up to step 1, which was verified last")));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out/case-2.h5"))) << "one rank writes it";
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out/checkpoint/step-2")));
}

/// A replica that drifts: rank 0's is right.
TEST_F(AgreedFindings, WhatRankZeroDoesNotSee) {
  const auto found = run("wrong update", std::string(kReplicas) + "--verify");
  EXPECT_EQ(found.code, 3) << found.out << found.err;
  EXPECT_EQ(exits(), all_inconsistent_);
  EXPECT_THAT(found.out,
              AllOf(HasSubstr(", seen by rank 1 and not by rank 0"),
                    HasSubstr("  op       step 2, microbatch 0, optimizer, tok_embeddings.weight, mesh::adamw"),
                    HasSubstr("  again    lockstep replay --case ")));
}

/// The operands of both ranks are in it: it differs again where the fault is, and nowhere else.
TEST_F(AgreedFindings, IsThereAgainInItsCase) {
  ASSERT_EQ(run("wrong gradient", "--verify").code, 3);
  const auto again = "replay --case " + folder_.file("out/case-1.h5");
  const auto there = run_binary(LOCKSTEP_FAULTY_BINARY, again, "LOCKSTEP_PLANTED_FAULT='wrong gradient' ");
  EXPECT_EQ(there.code, 3) << there.out << there.err;
  const auto elsewhere = run_lockstep(again);
  EXPECT_EQ(elsewhere.code, 0) << elsewhere.out << elsewhere.err;
}

TEST_F(AgreedFindings, ACollectiveIsThereAgainInItsCase) {
  for (const char* numerics : {"canonical", "native"}) {
    const auto found = run("wrong reduction", std::string("--verify --numerics.mode ") + numerics);
    EXPECT_EQ(found.code, 3) << found.out << found.err;
    const auto again = "replay --case " + folder_.file("out/case-1.h5");
    EXPECT_THAT(found.out, HasSubstr("  case     lockstep " + again + " moves it alone\n"));
    const auto there = run_binary(LOCKSTEP_FAULTY_BINARY, again, "LOCKSTEP_PLANTED_FAULT='wrong reduction' ");
    EXPECT_EQ(there.code, 3) << there.out << there.err;
    EXPECT_THAT(there.out, AllOf(HasSubstr("move on dp_shard=2: DIFFERS from one device\n"),
                                 HasSubstr("  kind     reduce_scatter over dp_shard, ranks 0-1\n")));
    const auto elsewhere = run_lockstep(again);
    EXPECT_EQ(elsewhere.code, 0) << elsewhere.out << elsewhere.err;
    std::filesystem::remove_all(folder_.file("out"));
  }
}

/// Without verification: copies are compared after every step.
TEST_F(AgreedFindings, ADriftedCopyEndsTheRun) {
  const auto found = run("wrong update", std::string(kReplicas) + "--checkpoint.enable true --checkpoint.interval 1");
  EXPECT_EQ(found.code, 3) << found.out << found.err;
  EXPECT_EQ(exits(), all_inconsistent_);
  EXPECT_THAT(found.out,
              AllOf(HasSubstr("INCONSISTENT  step 2, mesh dp_replicate=2: copies of tok_embeddings.weight["),
                    HasSubstr("the first copy: "), HasSubstr("elements wrong, on rank 1: times 1.001, everywhere)"),
                    HasSubstr("  resume   from " + folder_.file("out/checkpoint/step-1"))));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out/checkpoint/step-2")));
}

/// Not even then: but what is saved is compared.
TEST_F(AgreedFindings, ADriftedCopyIsNotSaved) {
  const auto found = run(
      "wrong update", std::string(kReplicas) + "--verify.modes step --checkpoint.enable true --checkpoint.interval 1");
  EXPECT_EQ(found.code, 3) << found.out << found.err;
  EXPECT_EQ(exits(), all_inconsistent_);
  EXPECT_THAT(found.err, AllOf(HasSubstr("lockstep: step 2: copies of tok_embeddings.weight["),
                               HasSubstr("A copy has drifted: the state is not saved. Resume from " +
                                         folder_.file("out/checkpoint/step-1"))));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out/checkpoint/step-2")));
}

TEST_F(AgreedFindings, ANanOfOneRank) {
  const auto found = run("NaN received", kReplicas);
  EXPECT_EQ(found.code, 3) << found.out << found.err;
  EXPECT_EQ(exits(), all_inconsistent_);
  EXPECT_THAT(found.err, AllOf(HasSubstr("are not both finite on rank 1; parameters are unchanged; the first op with a "
                                         "NaN or an infinity is all_reduce over dp_replicate in step 1, "),
                               HasSubstr("resume from the start: there is no checkpoint of this run")));
}

/// Beside one device it is a finding, which names the collective.
TEST_F(AgreedFindings, ANanOfOneRankBesideOneDevice) {
  const auto found = run("NaN received", std::string(kReplicas) + "--verify");
  EXPECT_EQ(found.code, 3) << found.out << found.err;
  EXPECT_EQ(exits(), all_inconsistent_);
  EXPECT_THAT(found.out, AllOf(HasSubstr("are not both finite on rank 1; parameters are unchanged; one device: loss "),
                               HasSubstr(" over dp_replicate, ranks 0-1\n"),
                               HasSubstr("  resume   from the start: there is no checkpoint of this run")));
}

}  // namespace
}  // namespace lockstep

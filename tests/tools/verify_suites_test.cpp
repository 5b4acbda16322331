// The shipped suites, whole: every mesh that they name beside one device. And odd shapes, through the command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/tools/run_lockstep.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOneThread = "OMP_NUM_THREADS=1 ";
constexpr const char* kSuites[] = {"verify", "verify_gpt2"};

/// Runs `lockstep verify JOB` with `more` behind it, and takes its JSON.
struct Verified {
  lockstep::Run run;
  nlohmann::ordered_json json;  ///< overrides in the order that they are printed in

  Verified(const std::string& job, const std::string& more, const std::string& binary = LOCKSTEP_BINARY,
           const std::string& fault = "") {
    const TemporaryFolder folder;
    run = run_binary(binary,
                     "verify jobs/" + job + ".toml -q --job.dump_folder " + folder.path() + " --json " +
                         folder.file("result.json") + " " + more,
                     kOneThread + ("LOCKSTEP_PLANTED_FAULT='" + fault + "' "));
    if (std::filesystem::exists(folder.file("result.json")))
      json = nlohmann::ordered_json::parse(file_content(folder.file("result.json")));
  }
};

class ShippedSuite : public ::testing::TestWithParam<const char*> {
 protected:
  trainer::Job job_ = trainer::resolve(
      trainer::load_job(std::string(LOCKSTEP_SOURCE_DIR "/jobs/") + GetParam() + ".toml"), trainer::Launch{});
};

TEST_P(ShippedSuite, AgreesOnAllItsMeshes) {
  const Verified all(GetParam(), "");
  EXPECT_EQ(all.run.code, 0) << all.run.out << all.run.err;
  std::vector<std::string> names, wanted;
  for (const auto& mesh : all.json["meshes"]) {
    names.push_back(mesh["mesh"]);
    EXPECT_EQ(mesh["verdict"], "pass") << mesh["mesh"];
  }
  for (const auto& mesh : trainer::parse_meshes(job_.verify.meshes)) wanted.push_back(mesh.text());
  EXPECT_EQ(names, wanted);
  EXPECT_EQ(all.json["verdict"], "pass");
  EXPECT_FALSE(all.json.contains("odd_shapes"));
  // Transfers are jobs/pipeline.toml's.
  EXPECT_EQ(all.json["coverage"]["collectives"]["missing"], nlohmann::ordered_json::array({"transfer"}));
}

/// What its comment says.
TEST_P(ShippedSuite, HasEveryAxisRecomputationAndMicrobatches) {
  std::set<std::string_view> cut;
  int64_t least = 1 << 20, most = 0;
  for (const auto& mesh : trainer::parse_meshes(job_.verify.meshes)) {
    for (const auto& axis : trainer::MeshDegrees::axes())
      if (mesh.*axis.size > 1) cut.insert(axis.name);
    const auto microbatches = trainer::derive_batching(job_, mesh).accumulation_steps;
    least = std::min(least, microbatches), most = std::max(most, microbatches);
  }
  EXPECT_EQ(cut, (std::set<std::string_view>{"cp", "dp_replicate", "dp_shard", "tp"}));
  EXPECT_EQ(least, 1);
  EXPECT_GE(most, 3);
  EXPECT_EQ(job_.activation_checkpoint.mode, "selective");
  EXPECT_EQ(job_.model.dropout, 0.1);
  EXPECT_THAT(job_.verify.meshes, HasSubstr("tp=3"));
}

INSTANTIATE_TEST_SUITE_P(Suites, ShippedSuite, ::testing::ValuesIn(kSuites),
                         [](const auto& param) { return std::string(param.param); });

TEST(VerifiedMeshes, AreTheCommandLinesThenTheSuitesThenTheJobsOwn) {
  const std::string small = " --training.seq_len 8 --verify.steps 1";
  const auto meshes_of = [&](const std::string& more) {
    const Verified verified("verify", more + small);
    std::vector<std::string> names;
    for (const auto& mesh : verified.json["meshes"]) names.push_back(mesh["mesh"]);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(meshes_of("--meshes cp=2 --verify.meshes tp=2"), (Names{"cp=2"}));
  EXPECT_EQ(meshes_of("--verify.meshes 'tp=2; cp=2'"), (Names{"tp=2", "cp=2"}));
  EXPECT_EQ(meshes_of("--verify.meshes ''"), (Names{"dp_shard=2,tp=2"}));
}

/// The shapes of each seed, then its meshes; pasted, the same job.
TEST(OddShapesOfTheCommand, ComeByTheirSeeds) {
  const Verified two("verify", "--odd-shapes 7..8 --meshes 'tp=3; dp_shard=5' --verify.steps 1");
  ASSERT_EQ(two.run.code, 0) << two.run.out << two.run.err;
  EXPECT_EQ(two.json["planned"], 4);
  ASSERT_EQ(two.json["odd_shapes"].size(), 2U);
  EXPECT_EQ(two.json["odd_shapes"][1]["seed"], 8);
  EXPECT_EQ(two.json["meshes"][1]["odd_shapes"], 7);
  EXPECT_EQ(two.json["meshes"][2]["odd_shapes"], 8);
  EXPECT_THAT(two.run.out, Not(HasSubstr("what a rank sends"))) << "nobody trains these";
  std::string pasted;
  for (const auto& [key, value] : two.json["odd_shapes"][1]["overrides"].items())
    pasted += (pasted.empty() ? "--" : " --") + key + " " + value.get<std::string>();
  EXPECT_THAT(two.run.out, HasSubstr("\nodd shapes 8: " + pasted + "\ntp=3 "));
  const Verified again("verify", pasted + " --meshes tp=3 --verify.steps 1");
  EXPECT_EQ(again.run.code, 0);
  EXPECT_EQ(again.json["meshes"][0]["bytes_per_step"], two.json["meshes"][2]["bytes_per_step"]);
}

TEST(OddShapesOfTheCommand, LeaveWhatTheCommandLineNames) {
  const Verified kept(
      "verify", "--odd-shapes 3 --meshes tp=2 --verify.steps 1 --model.layers 1 --activation_checkpoint.mode full");
  ASSERT_EQ(kept.run.code, 0) << kept.run.out << kept.run.err;
  const auto& overrides = kept.json["odd_shapes"][0]["overrides"];
  EXPECT_TRUE(overrides.contains("model.width"));
  EXPECT_FALSE(overrides.contains("model.layers"));
  EXPECT_FALSE(overrides.contains("activation_checkpoint.mode"));
  // One microbatch, whatever the job's own mesh.
  const Verified experts(
      "verify",
      "--model.name moe --parallelism.data_parallel_shard_degree 3 "
      "--parallelism.expert_parallel_degree 3 --meshes dp_shard=3,ep=3 --odd-shapes 1..2 --verify.steps 1");
  EXPECT_EQ(experts.run.code, 0) << experts.run.out << experts.run.err;
  EXPECT_EQ(experts.json["meshes"][1]["mesh"], "dp_shard=3,ep=3");
  const Verified unfit("verify", "--odd-shapes 1 --meshes tp=2 --model.width 7");
  EXPECT_EQ(unfit.run.code, 2);
  EXPECT_EQ(unfit.run.err,
            "lockstep: model.width 7 is no multiple of model.heads 5; set both so that one divides the other.\n");
}

/// The mesh alone would draw other samples: the command has the shapes themselves.
TEST(OddShapesOfTheCommand, OfAFindingAreInTheCommandThatIsNamed) {
  const Verified found("verify", "--odd-shapes 4 --meshes 'dp_shard=2; dp_shard=3' --verify.steps 1",
                       LOCKSTEP_FAULTY_BINARY, "wrong reduction");
  ASSERT_EQ(found.run.code, 3) << found.run.out << found.run.err;
  const std::string next = found.json["meshes"][1]["findings"][0]["next"];
  EXPECT_THAT(next, AllOf(HasSubstr(" --model.width "), HasSubstr(" --training.global_batch_size "),
                          ::testing::EndsWith(" --meshes dp_shard=3 --verify.steps 1"), Not(HasSubstr("odd-shapes"))));
  const auto arguments = next.substr(next.find(" jobs/"));
  const auto again = run_binary(LOCKSTEP_FAULTY_BINARY, "verify" + arguments,
                                std::string(kOneThread) + "LOCKSTEP_PLANTED_FAULT='wrong reduction' ");
  EXPECT_EQ(again.code, 3) << again.out << again.err;
}

}  // namespace
}  // namespace lockstep

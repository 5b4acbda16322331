// The shipped suites, whole: every mesh that they name beside one device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/tools/run_lockstep.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_EQ(all.json["coverage"]["collectives"]["missing"], nlohmann::ordered_json::array());
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

}  // namespace
}  // namespace lockstep

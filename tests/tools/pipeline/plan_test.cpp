// `lockstep plan`: what it prints, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.h"
#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(Plan, RanksTheMeshesThatFitAndSaysWhyOthersDoNot) {
  const TemporaryFolder folder;
  const auto run = run_lockstep("plan --ranks 64 --model 70B --batch 64 --rows 3 --json " + folder.file("plan.json"));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("forecasts, nothing was run"));
  EXPECT_THAT(run.out, HasSubstr("tp is more than the 8 ranks of a host\n"));
  EXPECT_THAT(run.out, HasSubstr("need more memory than there is"));
  const auto meshes = nlohmann::json::parse(file_content(folder.file("plan.json"))).at("meshes");
  EXPECT_EQ(meshes.size(), 210U) << "6 twos over 5 axes";
  double before = 0;
  int fit = 0, refused = 0;
  for (const auto& mesh : meshes) {
    EXPECT_EQ(mesh.at("fits").get<bool>(), mesh.at("why").get<std::string>().empty()) << mesh;
    if (mesh.at("step_seconds").is_null()) ++refused;
    if (!mesh.at("fits")) continue;
    ++fit;
    EXPECT_GE(mesh.at("step_seconds"), before) << "the fastest first";
    before = mesh.at("step_seconds");
    EXPECT_GT(mesh.at("mfu"), 0.0);
    EXPECT_LT(mesh.at("memory"), 0.95 * 81559 * (1 << 20));
  }
  EXPECT_GT(fit, 10);
  EXPECT_GT(refused, 10);
}

TEST(Plan, TellsWhatOneMeshSpendsItsTimeOn) {
  const auto run = run_lockstep("plan --mesh dp_shard=8,tp=8 --model 8B --batch 64");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("dp_shard=8,tp=8"));
  EXPECT_THAT(run.out, HasSubstr("seconds: computing "));
  EXPECT_THAT(run.out, HasSubstr("GiB: state "));
}

TEST(Plan, SaysThatOneMeshDoesNotFit) {
  const auto run = run_lockstep("plan --mesh dp_shard=8 --model 70B --batch 64");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("does not fit: "));
  EXPECT_THAT(run.out, HasSubstr(" GiB, of 74.9 usable ones\n"));
}

struct Wrong {
  const char *command, *message;
};

TEST(Plan, WhatIsWrongIsNamed) {
  for (const auto& [command, message] :
       {Wrong{"plan --model 8B", "lockstep plan needs --ranks or --mesh: lockstep plan --ranks 64 --model 8B."},
        Wrong{"plan --model 8B --ranks 8 --mesh tp=8", "lockstep plan needs --ranks or --mesh, not both"},
        Wrong{"plan --ranks 8 --model 9B", "model.flavor 9B is not known for llama3; choose one of"},
        Wrong{"plan --ranks 8 --model 8B --hardware h99",
              "--hardware h99 is neither one of a100, h100, h200 nor a file."},
        Wrong{"plan --ranks 0 --model 8B", "--ranks"}, Wrong{"plan --ranks 8", "--model is required"},
        Wrong{"plan --mesh ep=8 --model 8B", "ep and etp are of experts, which llama3 has none of"},
        Wrong{"plan --mesh tp=5 --model 8B", "tp does not divide 8 key-value heads."}}) {
    const auto run = run_lockstep(command);
    EXPECT_EQ(run.code, 2) << command;
    EXPECT_THAT(run.err, HasSubstr(message)) << command;
  }
}

}  // namespace
}  // namespace lockstep

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

TEST(Plan, ForecastsMixturesOfExperts) {
  const TemporaryFolder folder;
  const auto json = folder.file("plan.json");
  const auto run =
      run_lockstep("plan --ranks 2048 --model deepseek-v3-671B --batch 2048 --dtype float32 --json " + json);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("moe deepseek-v3-671B, 2048 sequences of 8192 tokens a step, float32, on h100"));
  const auto result = nlohmann::json::parse(file_content(json));
  EXPECT_EQ(result.at("family"), "moe");
  EXPECT_EQ(result.at("dtype"), "float32");
  const auto first = result.at("meshes")[0];
  EXPECT_THAT(first.at("mesh"), HasSubstr("ep="));
  EXPECT_GT(first.at("seconds").at("ep"), 0.0);
  EXPECT_EQ(run_lockstep("plan --mesh dp_shard=2,ep=2 --model moe/debugmodel --batch 4").code, 0);
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
        Wrong{"plan --ranks 8 --model 9B", "--model 9B is no flavor of llama3 (debugmodel, 1B, "},
        Wrong{"plan --ranks 8 --model moe/8B", "--model moe/8B is no flavor of llama3 ("},
        Wrong{"plan --ranks 8 --model 8B --dtype float16", "--dtype"},
        Wrong{"bench step --hardware f.toml", "--hardware is for lockstep bench forecast."},
        Wrong{"plan --ranks 8 --model 8B --hardware h99",
              "--hardware h99 is neither one of a100, h100, h200 nor a file."},
        Wrong{"plan --ranks 0 --model 8B", "--ranks"}, Wrong{"plan --ranks 8", "--model is required"},
        Wrong{"plan --mesh ep=8 --model 8B", "ep and etp are of experts, which the model has none of."},
        Wrong{"plan --mesh tp=5 --model 8B", "tp does not divide 8 key-value heads."}}) {
    const auto run = run_lockstep(command);
    EXPECT_EQ(run.code, 2) << command;
    EXPECT_THAT(run.err, HasSubstr(message)) << command;
  }
}

}  // namespace
}  // namespace lockstep

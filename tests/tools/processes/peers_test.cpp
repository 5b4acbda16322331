// PyTorch and torchtitan train the same model on the same tokens, in their own programs, and their losses are ours.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

using nlohmann::json;

bool has_python() {
  return std::filesystem::exists(LOCKSTEP_SOURCE_DIR "/.python/bin/python3") || std::getenv("LOCKSTEP_TORCH_PYTHON");
}

/// Rounding of float32 differs, and nothing else; in torchtitan's pipeline what clipping acts at, too (docs/peers.md).
void expect_same_training(const json& row) {
  const bool clips_elsewhere = row.at("name") == "pp_2" && row.at("peer_name") == "torchtitan";
  EXPECT_GE(row.at("loss_difference"), 0.0) << row;
  EXPECT_LT(row.at("loss_difference"), clips_elsewhere ? 2e-4 : 1e-6) << row;
  const auto& losses = row.at("losses");
  ASSERT_EQ(losses.size(), 20u);
  EXPECT_EQ(row.at("peer_losses").size(), 20u);
  EXPECT_LT(losses.back().get<double>(), losses.front().get<double>() - 0.1) << "nothing was learned: " << row;
  // A step takes longer than its products do, and not ten times as long, whatever else the machine does.
  const double step_over_products = row.at("at_most").get<double>() * row.at("ratio").get<double>();
  EXPECT_GT(step_over_products, 0.7) << row;
  EXPECT_LT(step_over_products, 10) << row;
  for (const char* fact : {"tokens_per_second", "peak_memory_bytes", "first_step_seconds", "start_seconds"}) {
    EXPECT_GT(row.at(fact), 0.0) << fact;
    EXPECT_GT(row.at(std::string("peer_") + fact), 0.0) << fact;
  }
}

/// Of one kind of run, another one with each commit: all of them take minutes.
TEST(Peers, HaveOurLosses) {
  if (!has_python()) GTEST_SKIP() << "NOT CHECKED: PyTorch's and torchtitan's losses (tools/python_env installs them)";
  const TemporaryFolder folder;
  constexpr const char* kRows[] = {"one_thread", "fsdp_2", "tp_2", "cp_2", "pp_2"};
  const std::string name = kRows[count_of_commits() % std::size(kRows)];
  const auto run = run_lockstep("bench peers --seconds 0 --rows " + name + " --json " + folder.file("peers"));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto result = json::parse(file_content(folder.file("peers")));
  std::vector<std::string> names;
  for (const auto& row : result.at("rows")) {
    names.push_back(row.at("name").get<std::string>() + " " + row.at("peer_name").get<std::string>());
    expect_same_training(row);
  }
  EXPECT_EQ(names, (std::vector<std::string>{name + " pytorch", name + " torchtitan"}));
  EXPECT_FALSE(result.at("cpu").get<std::string>().empty());
}

TEST(Peers, SayWhatIsMissing) {
  const auto run = run_lockstep("bench peers -q --seconds 0 --rows one_thread", "LOCKSTEP_TORCH_PYTHON=/bin/false ");
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err,
            "lockstep: pytorch_llama.py ended, and its last words are above. Peers in Python need torch and what "
            "tools/python_env installs (LOCKSTEP_TORCH_PYTHON may name another interpreter).\n");
  EXPECT_EQ(run_lockstep("bench peers -q --rows three_threads").code, 2);
}

}  // namespace
}  // namespace lockstep

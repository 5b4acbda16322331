// Processes that were not started alike: on two hosts, as two folders here, with a job, a text and checkpoints each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/processes/two_ranks.h"
#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

using ::testing::StartsWith;

constexpr const char* kJob = R"([job]
dump_folder = "out"
description = "test"
[model]
name = "mlp"
[training]
dataset_path = "text.txt"
seq_len = 16
local_batch_size = 4
steps = 2
[parallelism]
data_parallel_shard_degree = 2
[checkpoint]
interval = 1
)";

class Disagreements : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "the cat " + std::to_string(i * i % 97) + " sat on the mat, ";
    for (const auto& host : hosts_) {
      host.write("text.txt", text);
      host.write("job.toml", kJob);
    }
  }

  /// One rank on each host, each with arguments of its own.
  std::array<lockstep::Run, 2> run(const std::string& first, const std::string& second) {
    const std::string both = "train job.toml -q --json result.json --comm.init_timeout_seconds 20 ";
    return run_two_ranks({both + first, both + second}, {hosts_[0].path(), hosts_[1].path()});
  }

  void expect_refusal(const std::array<lockstep::Run, 2>& runs, const std::string& difference) const {
    for (const auto& run : runs) {
      EXPECT_EQ(run.code, 2);
      EXPECT_EQ(run.err, "lockstep: the processes were not started alike: " + difference +
                             ". Give all the same job, build, data and checkpoints.\n");
    }
  }
  nlohmann::json result() const { return nlohmann::json::parse(file_content(hosts_[0].file("result.json"))); }

  TemporaryFolder hosts_[2];
};

TEST_F(Disagreements, NoneIsARun) {
  for (const auto& run : run("", "")) EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_FALSE(result().contains("agreed"));
}

TEST_F(Disagreements, AKeyOfTheJob) {
  expect_refusal(run("", "--training.seq_len 32"), "training.seq_len is 16 on rank 0, 32 on rank 1");
  EXPECT_EQ(result(),
            (nlohmann::json{{"agreed", false}, {"key", "training.seq_len"}, {"values", {{"0", "16"}, {"1", "32"}}}}));
  expect_refusal(run("--debug.seed 7", ""), "debug.seed is 7 on rank 0, 0 on rank 1");
  expect_refusal(run("", "--model.dropout 0.5"), "model.dropout is not set on rank 0, 0.5 on rank 1");
}

/// The same path, another text.
TEST_F(Disagreements, TheData) {
  auto text = file_content(hosts_[1].file("text.txt"));
  text[5000] = '#';
  hosts_[1].write("text.txt", text);
  const auto runs = run("", "");
  for (const auto& run : runs) {
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, StartsWith("lockstep: the processes were not started alike: the digest of the data is "));
  }
  EXPECT_EQ(runs[0].err, runs[1].err);
  EXPECT_NE(result().at("values").at("0"), result().at("values").at("1"));
}

/// Folders of checkpoints that are not shared.
TEST_F(Disagreements, TheStepToResumeFrom) {
  ASSERT_EQ(run_lockstep("train job.toml -q --checkpoint.enable", "cd '" + hosts_[0].path() + "' && ").code, 0);
  expect_refusal(run("--checkpoint.enable --training.steps 3", "--checkpoint.enable --training.steps 3"),
                 "the checkpoint to resume from is step 2 on rank 0, none on rank 1");
}

}  // namespace
}  // namespace lockstep

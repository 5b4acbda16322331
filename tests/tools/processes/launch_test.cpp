// Runs of many processes: the same bits as one process that simulates them, checkpoints that both read, and an end,
// with the right exit code and a report, whatever happens to one of the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class Launch : public ::testing::Test {
 protected:
  lockstep::Run launch(int processes, const std::string& more) {
    return run_lockstep("launch -n " + std::to_string(processes) + " --grace 2 train " + job_ + " --json " +
                        folder_.file("many.json") + " " + more);
  }
  lockstep::Run simulate(const std::string& more) {
    return run_lockstep("train " + job_ + " -q --json " + folder_.file("one.json") + " " + more);
  }
  nlohmann::json result(const char* file) const { return nlohmann::json::parse(file_content(folder_.file(file))); }

  void expect_equal_results() const {
    const auto many = result("many.json"), one = result("one.json");
    EXPECT_EQ(many.at("state_digest"), one.at("state_digest"));
    for (size_t step = 0; step < one.at("steps").size(); ++step)
      for (const char* key : {"loss", "grad_norm"})
        EXPECT_EQ(many.at("steps")[step].at(key), one.at("steps")[step].at(key)) << key << " of step " << step + 1;
  }

  /// Behind the first one comm.train_timeout_seconds holds for all ranks.
  bool second_step_has_ended() const {
    const auto steps = file_content(folder_.file("out/metrics.jsonl"));
    return std::count(steps.begin(), steps.end(), '\n') > 1;
  }

  /// Starts a long run, and signals the process of rank 1 once two steps have ended and this file is written.
  lockstep::Run disturb(int processes, int signal, const std::string& more = "",
                        const char* written = "out/metrics.jsonl") {
    const auto degree = " --parallelism.data_parallel_shard_degree " + std::to_string(processes) + " ";
    auto running =
        std::async(std::launch::async, [&] { return launch(processes, "--training.steps 1000000" + degree + more); });
    pid_t victim = -1;
    for (int tries = 0; tries < 600 && victim < 0; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
      if (second_step_has_ended() && !file_content(folder_.file(written)).empty()) victim = rank_one();
    }
    if (victim > 0) ::kill(victim, signal);
    return running.get();
  }

  /// The process of this test's job whose environment says RANK=1.
  pid_t rank_one() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != name.npos) continue;
      const auto line = file_content(entry.path() / "cmdline"), variables = file_content(entry.path() / "environ");
      if (line.find(job_) != line.npos && variables.find(std::string("\0RANK=1\0", 8)) != variables.npos)
        return std::stoi(name);
    }
    return -1;
  }

  bool nothing_is_left() const {
    for (int tries = 0; tries < 50; ++tries, std::this_thread::sleep_for(std::chrono::milliseconds{100}))
      if (rank_one() < 0) return true;
    return false;
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
};

TEST_F(Launch, ProcessesGiveTheBitsOfOneThatSimulatesThem) {
  const struct {
    int processes;
    const char* mesh;
    std::vector<const char*> transports = {"shared_memory", "tcp", "gloo"};
  } cases[] = {{2, ""},
               {3, "--parallelism.data_parallel_shard_degree 1 --parallelism.tensor_parallel_degree 3"},
               {4, "--parallelism.data_parallel_replicate_degree 2 --training.local_batch_size 2"},
               {4, "--parallelism.tensor_parallel_degree 2 --numerics.mode native", {"auto"}},
               {4,
                "--parallelism.data_parallel_shard_degree 1 --parallelism.context_parallel_degree 2 "
                "--parallelism.tensor_parallel_degree 2 --training.seq_len 128"},
               {8,
                "--parallelism.data_parallel_replicate_degree 2 --parallelism.tensor_parallel_degree 2 "
                "--training.local_batch_size 2"}};
  for (const auto& [processes, mesh, transports] : cases) {
    const auto steps = mesh + std::string(" --training.steps 12 --comm.transport ");
    ASSERT_EQ(simulate(steps + "auto").code, 0) << mesh;
    for (const std::string transport : transports) {
      const auto many = launch(processes, steps + transport);
      ASSERT_EQ(many.code, 0) << mesh << " over " << transport << "\n" << many.err;
      expect_equal_results();
    }
  }
}

TEST_F(Launch, VerifiesEveryStep) {
  const auto run = launch(2, "--verify --training.steps 2");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("verified  2 steps on dp_shard=2"));
}

TEST_F(Launch, PassesTheCommandsResultOn) {
  const auto run = run_lockstep("launch --json " + folder_.file("many.json") + " -n 2 train " + job_);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(result("many.json").at("steps").size(), 4U);
  EXPECT_FALSE(result("many.json").contains("ranks"));
}

TEST_F(Launch, CheckpointsAreThoseOfOneProcess) {
  ASSERT_EQ(launch(2, "--checkpoint.enable true --training.steps 2 --lr_scheduler.total_steps 4").code, 0);
  ASSERT_EQ(run_lockstep("checkpoint inspect " + folder_.file("out/checkpoint/step-2")).code, 0);
  ASSERT_EQ(simulate("--checkpoint.enable true --training.steps 4").code, 0);  // goes on from there
  const auto continued = result("one.json").at("state_digest");
  EXPECT_EQ(result("one.json").at("steps").size(), 2U);
  ASSERT_EQ(simulate("--training.steps 4").code, 0);
  EXPECT_EQ(continued, result("one.json").at("state_digest"));
}

TEST_F(Launch, BadInputIsSaidOnce) {
  const auto run = launch(3, "");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("mesh dp_shard=2 needs 2 ranks, this launch has 3"));
  const auto ranks = result("many.json").at("ranks");
  ASSERT_EQ(ranks.size(), 3U);
  EXPECT_EQ(ranks[2].at("exit"), 2);
  EXPECT_THAT(ranks[2].at("error").get<std::string>(), HasSubstr("needs 2 ranks, this launch has 3"));
  EXPECT_EQ(run_lockstep("launch -n 2").code, 2);
  EXPECT_EQ(run_lockstep("launch train " + job_).code, 2);
}

class LaunchOver : public Launch, public ::testing::WithParamInterface<std::tuple<int, const char*>> {
 protected:
  lockstep::Run disturb_rank_one(int signal, const std::string& more = "") {
    const auto [processes, transport] = GetParam();
    return disturb(processes, signal, "--comm.transport " + std::string(transport) + more);
  }
};

INSTANTIATE_TEST_SUITE_P(Processes, LaunchOver,
                         ::testing::Values(std::tuple{2, "tcp"}, std::tuple{3, "shared_memory"}, std::tuple{4, "auto"},
                                           std::tuple{3, "gloo"}),
                         [](const auto& tested) {
                           return std::to_string(std::get<0>(tested.param)) + "_" + std::get<1>(tested.param);
                         });

TEST_P(LaunchOver, AKilledRankEndsTheRun) {
  const auto run = disturb_rank_one(SIGKILL);
  EXPECT_EQ(run.code, 4) << run.err;
  EXPECT_THAT(run.err, HasSubstr("rank 1: killed by signal 9"));
  EXPECT_THAT(run.err, ContainsRegex("rank [0-3] waits for rank 1, whose connection is gone"));
  EXPECT_THAT(run.err, ContainsRegex("lockstep: rank 1 was killed by signal 9 .Killed. .* of step [0-9]+, micro"));
  const auto ranks = result("many.json").at("ranks");
  EXPECT_EQ(ranks[1].at("exit"), -9);
  EXPECT_EQ(ranks[0].at("exit"), 4);
  EXPECT_THAT(ranks[0].at("error").get<std::string>(), HasSubstr("; in collective "));
  EXPECT_EQ(ranks[0].at("collective").at("state"), "gave up");
  EXPECT_TRUE(nothing_is_left());
}

TEST_P(LaunchOver, AStoppedRankEndsTheRun) {
  const auto run = disturb_rank_one(SIGSTOP, " --comm.train_timeout_seconds 5");
  EXPECT_EQ(run.code, 4) << run.err;
  // Whoever waits for it says so first; the others may see that one's connection end.
  EXPECT_THAT(run.err, ContainsRegex("rank [0-9] has waited 5 s for rank 1(, [0-9])*, which sends and takes nothing"));
  EXPECT_THAT(run.err, HasSubstr("lockstep: rank 1 is stopped (by a signal, such as SIGSTOP)"));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(Launch, AKilledRankLeavesNoHalfCheckpoint) {
  const auto run = disturb(2, SIGKILL, "--checkpoint.enable true --checkpoint.interval 1 --checkpoint.keep_latest_k 0",
                           "out/checkpoint/step-1/index.json");
  EXPECT_EQ(run.code, 4) << run.err;
  int64_t last = 0;
  for (const auto& folder : std::filesystem::directory_iterator(folder_.file("out/checkpoint"))) {
    if (!std::filesystem::exists(folder.path() / "index.json")) continue;
    EXPECT_EQ(run_lockstep("checkpoint inspect " + folder.path().string()).code, 0) << folder;
    last = std::max<int64_t>(last, std::stoll(folder.path().filename().string().substr(5)));
  }
  const auto again = launch(
      2, "--checkpoint.enable true --lr_scheduler.total_steps 1000000 --training.steps " + std::to_string(last + 1));
  EXPECT_GE(last, 1);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(result("many.json").at("steps").size(), 1U);
}

TEST_F(Launch, ASignalToOneRankSavesAllOfThem) {
  const auto run = disturb(2, SIGTERM);
  EXPECT_EQ(run.code, 6) << run.err;
  EXPECT_THAT(run.err, HasSubstr("a signal to another process: stopped after step"));
  EXPECT_TRUE(nothing_is_left());
}

}  // namespace
}  // namespace lockstep

// Two hosts, made of two network namespaces and a cable between them: ranks of one share memory, those of different
// ones talk by TCP or Gloo, and every bit is as in one process. A cut cable ends the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

bool system(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

class TwoHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!make_hosts()) GTEST_SKIP() << "network namespaces cannot be made here (they need root and iproute2)";
  }
  void TearDown() override {
    for (const int h : {0, 1}) system("ip netns del " + host(h));
  }

  static bool make_hosts() {
    if (!system("ip netns add " + host(0)) || !system("ip netns add " + host(1)) ||
        !system("ip link add cable netns " + host(0) + " type veth peer name cable netns " + host(1)))
      return false;
    for (const int h : {0, 1}) {
      if (!system("ip -n " + host(h) + " addr add " + address(h) + "/24 dev cable")) return false;
      for (const char* device : {"lo", "cable"})
        if (!system("ip -n " + host(h) + " link set " + device + " up")) return false;
    }
    return true;
  }

  static std::string host(int number) {
    return "lockstep-" + std::to_string(::getpid()) + "-" + std::to_string(number);
  }
  static std::string address(int host) { return "10.77.0." + std::to_string(host + 1); }

  /// Four ranks of dp_shard=4, two on each host.
  std::vector<std::future<lockstep::Run>> start(const std::string& more) const {
    std::vector<std::future<lockstep::Run>> runs;
    for (int rank = 0; rank < 4; ++rank)
      runs.push_back(std::async(std::launch::async, [this, rank, more] {
        const auto variables =
            "RANK=" + std::to_string(rank) + " WORLD_SIZE=4 MASTER_ADDR=" + address(0) +
            " MASTER_PORT=29511 LOCKSTEP_JOB_TOKEN=of-a-test-of-two-hosts LOCKSTEP_BIND_ADDRESS=" + address(rank / 2) +
            " ip netns exec " + host(rank / 2) + " ";
        return run_lockstep(arguments(more, "many.json"), variables);
      }));
    return runs;
  }
  std::string arguments(const std::string& more, const char* result) const {
    return "train " + job_ + " -q --parallelism.data_parallel_shard_degree 4 --training.local_batch_size 2 --json " +
           folder_.file(result) + " " + more;
  }

  void expect_the_bits_of_one_process(const std::string& more) const {
    auto runs = start(more);
    for (auto& run : runs) {
      const auto ended = run.get();
      ASSERT_EQ(ended.code, 0) << ended.err;
    }
    ASSERT_EQ(run_lockstep(arguments(more, "one.json")).code, 0);
    const auto result = [&](const char* file) { return nlohmann::json::parse(file_content(folder_.file(file))); };
    const auto many = result("many.json"), one = result("one.json");
    EXPECT_EQ(many.at("state_digest"), one.at("state_digest"));
    ASSERT_GE(one.at("steps").size(), 10U);
    for (size_t step = 0; step < one.at("steps").size(); ++step)
      for (const char* key : {"loss", "grad_norm"})
        EXPECT_EQ(many.at("steps").at(step).at(key), one.at("steps")[step].at(key)) << key << " of step " << step + 1;
  }

  void expect_a_cut_cable_ends_the_run(const std::string& more) const {
    auto runs = start("--training.steps 1000000 --comm.train_timeout_seconds 3 " + more);
    const auto steps = [&] { return file_content(folder_.file("out/metrics.jsonl")); };
    const auto second = [&] { return steps().find("\n{") != std::string::npos; };  // its timeout is that of training
    for (int tries = 0; tries < 300 && !second(); ++tries) std::this_thread::sleep_for(std::chrono::milliseconds{100});
    ASSERT_TRUE(system("ip -n " + host(0) + " link set cable down"));
    const auto cut = Clock::now();
    for (auto& run : runs) {
      const auto ended = run.get();
      EXPECT_EQ(ended.code, 4) << ended.err;
      EXPECT_THAT(ended.err, AnyOf(HasSubstr("has waited 3 s for rank"), HasSubstr("whose connection is gone")));
    }
    EXPECT_LT(Clock::now() - cut, std::chrono::seconds{3 + 2 + 3});  // the timeout, 2 s, what a busy machine takes
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
};

TEST_F(TwoHosts, FiftyStepsAreThoseOfOneProcess) { expect_the_bits_of_one_process("--training.steps 50"); }

TEST_F(TwoHosts, StepsOverGlooAreThoseOfOneProcess) {
  expect_the_bits_of_one_process("--training.steps 20 --comm.transport gloo");
}

TEST_F(TwoHosts, ACutCableEndsTheRun) { expect_a_cut_cable_ends_the_run(""); }
TEST_F(TwoHosts, ACutCableEndsTheRunOverGloo) { expect_a_cut_cable_ends_the_run("--comm.transport gloo"); }

}  // namespace
}  // namespace lockstep

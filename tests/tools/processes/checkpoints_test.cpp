// Checkpoints of several processes: what one of them cannot do, does slowly, or does alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/processes/two_ranks.h"
#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"
#include "tests/tools/spawned.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

class Checkpoints : public ::testing::Test {
 protected:
  lockstep::Run run(const std::string& more, const std::string& fault = "") const {
    return run_binary(
        LOCKSTEP_FAULTY_BINARY,
        "launch -n 2 train " + job_ + " -q --checkpoint.enable --json " + folder_.file("result.json") + " " + more,
        "OMP_NUM_THREADS=1 LOCKSTEP_PLANTED_FAULT='" + fault + "' ");
  }
  std::string digest() const {
    return nlohmann::json::parse(file_content(folder_.file("result.json"))).at("state_digest");
  }
  std::vector<int> exits() const {
    const auto result = nlohmann::json::parse(file_content(folder_.file("result.json")));
    std::vector<int> codes;
    for (const auto& rank : result.at("ranks")) codes.push_back(rank.at("exit"));
    return codes;
  }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_.file(name)); }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
};

/// Four seconds of one rank's writing, where others wait one for a message.
TEST_F(Checkpoints, ASlowDiskKillsNobody) {
  const auto start = Clock::now();
  const auto slow = run("--comm.train_timeout_seconds 1", "slow save");
  EXPECT_EQ(slow.code, 0) << slow.err;
  EXPECT_GT(Clock::now() - start, std::chrono::seconds(8)) << "two saves";
  const auto slow_digest = digest();
  std::filesystem::remove_all(folder_.file("out"));
  ASSERT_EQ(run("").code, 0);
  EXPECT_EQ(slow_digest, digest());
}

TEST_F(Checkpoints, AFullDiskOfOneRankEndsAllWithItsError) {
  const auto full = run("", "failed save");
  EXPECT_EQ(full.code, 5);
  EXPECT_EQ(exits(), (std::vector<int>{5, 5}));
  EXPECT_THAT(full.err, AllOf(HasSubstr("lockstep: rank 1: " + folder_.file("out/checkpoint/step-2/data-0000-00001")),
                              HasSubstr("No space left on device")));
  EXPECT_FALSE(has("out/checkpoint/step-2/index.json"));
  ASSERT_EQ(run("").code, 0) << "the next run begins anew";
}

/// What a crashed save left goes with the next one.
TEST_F(Checkpoints, OfARankThatDiesWhileItSavesNothingIsLeft) {
  ASSERT_EQ(run("--training.steps 2").code, 0);
  const auto dead =
      run("--lr_scheduler.total_steps 4 --checkpoint.allow_changed lr_scheduler.total_steps", "death while saving");
  EXPECT_EQ(dead.code, 4) << dead.err;
  EXPECT_TRUE(has("out/checkpoint/step-4"));
  EXPECT_FALSE(has("out/checkpoint/step-4/index.json"));
  std::filesystem::rename(folder_.file("out/checkpoint/step-4"), folder_.file("out/checkpoint/step-9"));
  const auto again = run("--lr_scheduler.total_steps 4 --checkpoint.allow_changed lr_scheduler.total_steps");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_FALSE(has("out/checkpoint/step-9"));
  EXPECT_TRUE(has("out/checkpoint/step-2/index.json"));
  EXPECT_TRUE(has("out/checkpoint/step-4/index.json"));
}

constexpr const char* kAsync = " --checkpoint.async_mode async";

TEST_F(Checkpoints, WrittenBesideTheStepsHaveTheSameBytes) {
  const std::string index = "out/checkpoint/step-2/index.json",
                    data = "out/checkpoint/step-2/data-0000-00001-0000.safetensors";
  ASSERT_EQ(run("").code, 0);
  auto expected = nlohmann::json::parse(file_content(folder_.file(index)));
  const auto bytes = file_content(folder_.file(data)), digest_before = digest();
  std::filesystem::remove_all(folder_.file("out"));
  const auto beside = run(kAsync);
  ASSERT_EQ(beside.code, 0) << beside.err;
  auto found = nlohmann::json::parse(file_content(folder_.file(index)));
  for (auto* each : {&expected, &found}) each->at("contents").erase("job"), each->erase("digest");
  EXPECT_EQ(found, expected);
  EXPECT_EQ(file_content(folder_.file(data)), bytes);
  EXPECT_EQ(digest(), digest_before);
}

/// The steps go on while one rank writes for four seconds; the last save is waited for.
TEST_F(Checkpoints, BesideTheStepsASlowDiskKillsNobody) {
  const auto slow = run("--comm.train_timeout_seconds 1" + std::string(kAsync), "slow save");
  EXPECT_EQ(slow.code, 0) << slow.err;
  for (const auto* step : {"2", "4"}) EXPECT_TRUE(has("out/checkpoint/step-" + std::string(step) + "/index.json"));
}

TEST_F(Checkpoints, BesideTheStepsAFullDiskOfOneRankEndsAllWithItsError) {
  const auto full = run(kAsync, "failed save");
  EXPECT_EQ(full.code, 5);
  EXPECT_EQ(exits(), (std::vector<int>{5, 5}));
  EXPECT_THAT(full.err, AllOf(HasSubstr("lockstep: rank 1: " + folder_.file("out/checkpoint/step-2/data-0000-00001")),
                              HasSubstr("No space left on device")));
  EXPECT_FALSE(has("out/checkpoint/step-2/index.json"));
}

TEST_F(Checkpoints, BesideTheStepsARankThatDiesWhileItSavesLeavesNoCheckpoint) {
  const auto dead = run(kAsync, "death while saving");
  EXPECT_EQ(dead.code, 4) << dead.err;
  EXPECT_TRUE(has("out/checkpoint/step-2"));
  EXPECT_FALSE(has("out/checkpoint/step-2/index.json"));
  const auto again = run(kAsync);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(has("out/checkpoint/step-2/index.json"));
}

TEST_F(Checkpoints, DamageThatOneRankReadsEndsAllWithItsName) {
  ASSERT_EQ(run("--training.steps 2 --lr_scheduler.total_steps 4").code, 0);
  const auto file = folder_.file("out/checkpoint/step-2/data-0000-00001-0000.safetensors");
  auto bytes = file_content(file);
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  const auto damaged = run("--lr_scheduler.total_steps 4");
  EXPECT_EQ(damaged.code, 5) << damaged.out << damaged.err;
  EXPECT_EQ(exits(), (std::vector<int>{5, 5}));
  EXPECT_THAT(damaged.err, AllOf(HasSubstr("lockstep: rank 1: " + file), HasSubstr("does not match its digest")));
}

/// While a run writes there another one is refused, and changes nothing; the lock is gone with its process.
TEST_F(Checkpoints, TwoRunsInOneFolder) {
  const auto out = write_to(folder_.file("first.out")), err = write_to(folder_.file("first.err"));
  const std::string more[] = {"--training.steps", "100000", "--lr_scheduler.total_steps", "100000"};
  Spawned first({LOCKSTEP_BINARY, "train", job_, "--checkpoint.enable", more[0], more[1], more[2], more[3]}, out, err);
  while (!has("out/checkpoint/step-2/index.json") && !first.wait(std::chrono::milliseconds(10))) {
  }
  for (const auto* command : {"train ", "launch -n 2 train "}) {
    const auto second = run_lockstep(command + job_ + " -q");
    EXPECT_EQ(second.code, 2) << command << second.out << second.err;
    EXPECT_THAT(second.err, AllOf(HasSubstr(folder_.file("out") + ": another run (process "),
                                  HasSubstr("Wait until it has ended, or choose another job.dump_folder.")));
  }
  const auto elsewhere = run_lockstep("train " + job_ + " -q --job.dump_folder " + folder_.file("other") +
                                      " --checkpoint.enable --checkpoint.folder " + folder_.file("out/checkpoint"));
  EXPECT_EQ(elsewhere.code, 2) << elsewhere.out << elsewhere.err;
  EXPECT_THAT(elsewhere.err, HasSubstr("or choose another checkpoint.folder."));
  first.signal(SIGKILL);
  first.code(10);
  EXPECT_EQ(run_lockstep("train " + job_ + " -q").code, 0);
}

/// Two hosts with a disk each, as two folders here.
class UnsharedDisks : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& host : hosts_) {
      std::filesystem::copy_file(write_small_job(host), host.file("copy.toml"));
      auto text = file_content(host.file("job.toml"));
      for (auto at = text.find(host.path() + "/"); at != text.npos; at = text.find(host.path() + "/"))
        text.erase(at, host.path().size() + 1);
      host.write("job.toml", text);
    }
  }
  auto run(const std::string& more) const {
    const auto arguments = "train job.toml -q " + more;
    return run_two_ranks({arguments, arguments}, {hosts_[0].path(), hosts_[1].path()});
  }
  TemporaryFolder hosts_[2];
};

TEST_F(UnsharedDisks, AreRefusedBeforeTheFirstStep) {
  for (const auto& run : run("--checkpoint.enable")) {
    EXPECT_EQ(run.code, 5) << run.out << run.err;
    EXPECT_EQ(
        run.err,
        "lockstep: rank 1: out/checkpoint: is not on a disk that all hosts share: what rank 0 writes there is not "
        "seen here. Choose a job.dump_folder or checkpoint.folder that is.\n");
  }
  EXPECT_FALSE(std::filesystem::exists(hosts_[0].file("out/metrics.jsonl")));
}

TEST_F(UnsharedDisks, DoNotMatterToARunThatSavesNothing) {
  for (const auto& run : run("")) EXPECT_EQ(run.code, 0) << run.err;
}

}  // namespace
}  // namespace lockstep

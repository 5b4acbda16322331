// A launch that loses ranks goes on, on fewer of them or on all, and ends with the bits of one that was let alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"
#include "tests/tools/spawned.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr double kPatience = 200;  ///< seconds, on a busy machine

class Restarts : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("OMP_NUM_THREADS", "1", 0); }

  Words train(const Words& launch) const {
    Words words{LOCKSTEP_BINARY, "launch"};
    words.insert(words.end(), launch.begin(), launch.end());
    for (const auto& word :
         {std::string("train"), job_, std::string("-q"), std::string("--checkpoint.enable"),
          std::string("--checkpoint.interval"), std::string("3"), std::string("--checkpoint.async_mode"),
          std::string("async"), std::string("--training.steps"), std::string("300"), std::string("--json"),
          folder_.file("result.json")})
      words.push_back(word);
    return words;
  }
  std::unique_ptr<Spawned> start(const Words& words) const {
    return std::make_unique<Spawned>(words, write_to(folder_.file("out.txt")), write_to(folder_.file("err.txt")));
  }
  std::string errors() const { return file_content(folder_.file("err.txt")); }
  nlohmann::json result() const { return nlohmann::json::parse(file_content(folder_.file("result.json"))); }
  std::string digest() const { return result().at("state_digest"); }

  /// The processes of the ranks, in their order; empty until there are so many.
  static std::vector<pid_t> ranks_of(pid_t launcher, size_t count) {
    auto ranks = children_of(launcher);
    return ranks.size() == count ? ranks : std::vector<pid_t>{};
  }
  bool has_saved(int64_t after) const {
    std::error_code gone;
    for (const auto& step : std::filesystem::directory_iterator(folder_.file("out/checkpoint"), gone)) {
      const auto name = step.path().filename().string();
      if (name.starts_with("step-") && std::stoll(name.substr(5)) > after &&
          std::filesystem::exists(step.path() / "index.json", gone))
        return true;
    }
    return false;
  }
  int64_t last_step() const {
    int64_t last = 0;
    std::error_code gone;
    for (const auto& step : std::filesystem::directory_iterator(folder_.file("out/checkpoint"), gone)) {
      const auto name = step.path().filename().string();
      if (name.starts_with("step-")) last = std::max<int64_t>(last, std::stoll(name.substr(5)));
    }
    return last;
  }
  /// Kills one of so many ranks once something new has been saved; false if the launch has ended before.
  bool kill_one(Spawned& launch, size_t ranks, size_t which) const {
    const auto before = last_step();
    while (!has_saved(before))
      if (launch.wait(std::chrono::milliseconds(5))) return false;
    std::vector<pid_t> all;
    while ((all = ranks_of(launch.id(), ranks)).empty())
      if (launch.wait(std::chrono::milliseconds(5))) return false;
    ::kill(all.at(which), SIGKILL);
    while (ranks_of(launch.id(), ranks) == all)
      if (launch.wait(std::chrono::milliseconds(5))) return false;
    return true;
  }
  std::string undisturbed() const {
    EXPECT_EQ(start(train({"-n", "2"}))->code(kPatience), 0) << errors();
    auto expected = digest();
    std::filesystem::remove_all(folder_.file("out"));
    std::filesystem::remove(folder_.file("result.json"));
    return expected;
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
};

TEST_F(Restarts, OnAllRanksThatAreBackAtOnce) {
  const auto expected = undisturbed();
  const auto launch = start(train({"-n", "2", "--restarts", "3"}));
  for (const size_t rank : {1, 0, 1}) ASSERT_TRUE(kill_one(*launch, 2, rank)) << errors();
  ASSERT_EQ(launch->code(kPatience), 0) << errors();
  EXPECT_EQ(digest(), expected);
  EXPECT_EQ(result().at("restarts").size(), 3u);
  EXPECT_THAT(errors(), AllOf(HasSubstr("rank 1 was killed by signal 9"), HasSubstr("lockstep: restart 3 of 3\n"),
                              HasSubstr("lockstep: going on on dp_shard=2: 2 of 2 ranks\n")));
}

TEST_F(Restarts, OnTheRanksThatAreLeft) {
  const auto expected = undisturbed();
  const auto launch = start(train({"-n", "2", "--restarts", "1", "--min-ranks", "1", "--back-after", "inf"}));
  ASSERT_TRUE(kill_one(*launch, 2, 1)) << errors();
  ASSERT_EQ(launch->code(kPatience), 0) << errors();
  EXPECT_EQ(digest(), expected);
  EXPECT_THAT(errors(), HasSubstr("lockstep: going on on one device: 1 of 2 ranks\n"));
}

/// Fewer, and all again when the lost one is back, which is no restart.
TEST_F(Restarts, OnAllWhenTheyAreBack) {
  const auto expected = undisturbed();
  const auto launch = start(train({"-n", "2", "--restarts", "1", "--min-ranks", "1", "--back-after", "1"}));
  ASSERT_TRUE(kill_one(*launch, 2, 0)) << errors();
  ASSERT_EQ(launch->code(kPatience), 0) << errors();
  EXPECT_EQ(digest(), expected);
  EXPECT_EQ(result().at("restarts").size(), 1u);
  EXPECT_THAT(errors(), AllOf(HasSubstr("going on on one device: 1 of 2 ranks\n"),
                              HasSubstr("going on on dp_shard=2: 2 of 2 ranks\n")));
}

/// Three of four are left: the batch of 16 divides over two.
TEST_F(Restarts, OnTheLargestMeshThatTheBatchDividesOver) {
  const Words mesh{"--parallelism.data_parallel_replicate_degree", "2", "--training.steps", "60"};
  const auto with_mesh = [&](Words words) {
    words.insert(words.end(), mesh.begin(), mesh.end());
    return words;
  };
  ASSERT_EQ(start(with_mesh(train({"-n", "4"})))->code(kPatience), 0) << errors();
  const auto expected = digest();
  std::filesystem::remove_all(folder_.file("out"));
  const auto launch =
      start(with_mesh(train({"-n", "4", "--restarts", "1", "--min-ranks", "2", "--back-after", "inf"})));
  ASSERT_TRUE(kill_one(*launch, 4, 2)) << errors();
  ASSERT_EQ(launch->code(kPatience), 0) << errors();
  EXPECT_EQ(digest(), expected);
  EXPECT_THAT(errors(), HasSubstr("lockstep: going on on dp_shard=2: 2 of 4 ranks\n"));
}

TEST_F(Restarts, NoMoreThanItMay) {
  const auto launch = start(train({"-n", "2", "--restarts", "1"}));
  for (const size_t rank : {1, 0}) kill_one(*launch, 2, rank);
  EXPECT_EQ(launch->code(kPatience), 4) << errors();
  EXPECT_THAT(errors(), HasSubstr("lockstep: all 1 restarts of --restarts are used up.\n"));
  EXPECT_EQ(result().at("restarts").size(), 1u);
  EXPECT_EQ(result().at("ranks").size(), 2u);
}

TEST_F(Restarts, NotOnFewerThanItMay) {
  const auto launch = start(train({"-n", "2", "--restarts", "5", "--back-after", "inf"}));
  kill_one(*launch, 2, 1);
  EXPECT_EQ(launch->code(kPatience), 4) << errors();
  EXPECT_THAT(errors(), HasSubstr("lockstep: 1 rank left of 2, and --min-ranks is 2: the run ends. It goes on with the "
                                  "same command.\n"));
}

TEST_F(Restarts, NotAfterASignalToAll) {
  const auto launch = start(train({"-n", "2", "--restarts", "5"}));
  while (!has_saved(0)) ASSERT_FALSE(launch->wait(std::chrono::milliseconds(5))) << errors();
  launch->signal(SIGTERM);
  EXPECT_EQ(launch->code(kPatience), 6) << errors();
  EXPECT_THAT(errors(), Not(HasSubstr("restart")));
}

std::string error_of(const std::string& arguments) {
  const auto run = run_lockstep("launch " + arguments);
  EXPECT_EQ(run.code, 2) << run.out << run.err;
  return run.err;
}

TEST_F(Restarts, NotOfAnErrorOfTheJob) {
  EXPECT_THAT(error_of("-n 2 --restarts 5 train " + job_ + " --checkpoint.enable --training.dataset_path " +
                       folder_.file("none")),
              AllOf(HasSubstr(folder_.file("none")), Not(HasSubstr("restart"))));
}

TEST_F(Restarts, NotOfAFinding) {
  const auto run =
      run_binary(LOCKSTEP_FAULTY_BINARY, "launch -n 2 --restarts 5 train " + job_ + " -q --checkpoint.enable --verify",
                 "OMP_NUM_THREADS=1 LOCKSTEP_PLANTED_FAULT='wrong gradient' ");
  EXPECT_EQ(run.code, 3) << run.out << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("restart")));
}

TEST_F(Restarts, AreRefusedWhereTheyCouldNotBe) {
  EXPECT_EQ(error_of("-n 2 --min-ranks 1 train " + job_),
            "lockstep: --min-ranks is about restarts: add --restarts K.\n");
  EXPECT_EQ(error_of("-n 2 --back-after 1 train " + job_),
            "lockstep: --back-after is about restarts: add --restarts K.\n");
  EXPECT_EQ(error_of("-n 2 --min-ranks 3 --restarts 1 train " + job_), "lockstep: --min-ranks 3 is more than -n 2.\n");
  EXPECT_EQ(error_of("-n 2 --restarts 1 --back-after=-1 train " + job_),
            "lockstep: --back-after is -1, must be at least 0, or inf.\n");
  EXPECT_EQ(
      error_of("-n 2 --restarts 1 train " + job_),
      "lockstep: --restarts goes on from checkpoints, and checkpoint.enable is false: add --checkpoint.enable.\n");
  EXPECT_EQ(error_of("-n 2 --restarts 1 train --dry-run " + job_),
            "lockstep: --restarts is for lockstep train: it goes on from checkpoints. Leave it out.\n");
  EXPECT_EQ(error_of("-n 2 --restarts 1 doctor"),
            "lockstep: --restarts is for lockstep train: it goes on from checkpoints. Leave it out.\n");
}

}  // namespace
}  // namespace lockstep

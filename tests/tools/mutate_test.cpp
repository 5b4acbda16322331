// `lockstep mutate`, end to end: a few faults of each class, whose places the seed draws. A fault that is not seen is
// exit code 3, and a missing check: it gets one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.h"
#include "tests/tools/run_lockstep.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

/// Of this commit: other faults with each. 1 where there is no git.
int turn() {
  const auto count = run_binary("git", "-C '" LOCKSTEP_SOURCE_DIR "' rev-list --count HEAD", "");
  return count.code == 0 ? std::stoi(count.out) : 1;
}

TEST(Mutate, SeesAFewOfEachClass) {
  const TemporaryFolder folder;
  const auto seed = "--seed " + std::to_string(turn()) + " ";
  SCOPED_TRACE("lockstep mutate --each 2 " + seed);
  const auto run = run_lockstep(
      "mutate -q " + seed + "--each 2 --json " + folder.file("score.json") + " --markdown " + folder.file("score.md"),
      "OMP_NUM_THREADS=1 ");
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  const auto score = nlohmann::json::parse(file_content(folder.file("score.json")));
  EXPECT_EQ(score.at("mutants"), 40);
  EXPECT_EQ(score.at("classes").size(), 20u);
  EXPECT_EQ(score.at("false_alarms"), 0);
  EXPECT_EQ(score.at("clean_steps"), 248);
  EXPECT_GT(score.at("clean_cases"), 100000);
  EXPECT_TRUE(score.at("survivors").empty());
  const int64_t equivalent = score.at("equivalent"), caught = score.at("caught"), named = score.at("blame_exact");
  EXPECT_EQ(caught + equivalent, 40);
  EXPECT_GT(caught, 20);
  EXPECT_GE(named, caught * 9 / 10);
  for (const auto* other : {"replica hashes", "loss curve", "module outputs", "forward ops"})
    EXPECT_LT(score.at("others").at(other).get<int64_t>(), caught) << other;
  EXPECT_THAT(file_content(folder.file("score.md")), HasSubstr("Written by `lockstep mutate " + seed + "--each 2`"));
}

TEST(Mutate, AClassAlone) {
  const auto run = run_lockstep("mutate -q --class M5 --each 1", "OMP_NUM_THREADS=1 ");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("M5   an average for a sum"));
}

/// Time that is up before the first mutant: nothing was tried, and it is said.
TEST(Mutate, TimeThatIsUp) {
  const TemporaryFolder folder;
  const auto run = run_lockstep("mutate -q --seconds 0 --json " + folder.file("score.json"), "OMP_NUM_THREADS=1 ");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("time was up"));
  EXPECT_EQ(nlohmann::json::parse(file_content(folder.file("score.json"))).at("was_cut"), true);
}

}  // namespace
}  // namespace lockstep

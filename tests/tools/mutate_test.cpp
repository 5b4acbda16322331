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

TEST(Mutate, SeesOneOfEachClass) {
  const TemporaryFolder folder;
  const auto seed = "--seed " + std::to_string(count_of_commits()) + " ";
  SCOPED_TRACE("lockstep mutate --each 1 " + seed);
  const auto run = run_lockstep(
      "mutate -q " + seed + "--each 1 --json " + folder.file("score.json") + " --markdown " + folder.file("score.md"),
      "OMP_NUM_THREADS=1 ");
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  const auto score = nlohmann::json::parse(file_content(folder.file("score.json")));
  EXPECT_EQ(score.at("mutants"), 21);
  EXPECT_EQ(score.at("classes").size(), 21u);
  EXPECT_EQ(score.at("false_alarms"), 0);
  EXPECT_EQ(score.at("clean_steps"), 312);
  EXPECT_EQ(score.at("trials").size(), 21u);
  EXPECT_GT(score.at("clean_cases"), 100000);
  EXPECT_TRUE(score.at("survivors").empty());
  const int64_t equivalent = score.at("equivalent"), caught = score.at("caught"), named = score.at("blame_exact");
  EXPECT_EQ(caught + equivalent, 21);
  EXPECT_GT(caught, 10);
  EXPECT_GE(named, caught * 9 / 10);
  // One mutant of each class may be one that outputs of modules show.
  EXPECT_LE(score.at("others").at("module outputs").get<int64_t>(), caught);
  for (const auto* other : {"replica hashes", "loss curve", "forward ops"})
    EXPECT_LT(score.at("others").at(other).get<int64_t>(), caught) << other;
  EXPECT_THAT(file_content(folder.file("score.md")), HasSubstr("Written by `lockstep mutate " + seed + "--each 1`"));
}

TEST(Mutate, AClassAlone) {
  const auto run = run_lockstep("mutate -q --class M5 --each 1", "OMP_NUM_THREADS=1 ");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("M5   an average for a sum"));
}

/// The part of the page that is not this command's stays.
TEST(Mutate, KeepsWhatIsBehindTheMark) {
  const TemporaryFolder folder;
  const std::string mark = "<!-- from here on: tools/mutate_sources --report --markdown -->";
  const auto page = folder.write("score.md", "old\n" + mark + "\n\na table\n");
  const auto run = run_lockstep("mutate -q --seconds 0 --markdown " + page, "OMP_NUM_THREADS=1 ");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(file_content(page), ::testing::StartsWith("# What verification sees\n"));
  EXPECT_THAT(file_content(page), ::testing::EndsWith("\n" + mark + "\n\na table\n"));
}

/// The project's own pages are those of full runs.
TEST(Mutate, APartOfARunLeavesThePagesAsTheyAre) {
  const TemporaryFolder folder;
  folder.write("layers.txt", "");
  std::filesystem::create_directory(folder.file("docs"));
  const auto page = folder.write("docs/mutation_score.md", "a page");
  for (const auto* part : {"--seconds 0", "--seconds 0 --seed 2"}) {
    const auto run =
        run_binary("env", "-C " + folder.path() + " OMP_NUM_THREADS=1 '" LOCKSTEP_BINARY "' mutate -q " + part);
    EXPECT_EQ(run.code, 0) << run.err;
  }
  EXPECT_EQ(file_content(page), "a page");
  EXPECT_FALSE(std::filesystem::exists(folder.file("docs/mutation_score.json")));
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

// lockstep fuzz as a user sees it: what it finds of a fault on one rank, how that is run again, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr const char* kFault = "OMP_NUM_THREADS=1 LOCKSTEP_PLANTED_FAULT='wrong gradient' ";
constexpr const char* kOp = "mesh::weight_gradient";

class Fuzz : public ::testing::Test {
 protected:
  lockstep::Run faulty(const std::string& arguments) const {
    return run_binary(LOCKSTEP_FAULTY_BINARY, arguments + " --failures " + folder_.file("found"), kFault);
  }
  lockstep::Run search() const {
    return faulty(
        fmt::format("fuzz ops --op {}/layouts --cases 300 --seed 7 -q --json {}", kOp, folder_.file("result.json")));
  }
  nlohmann::json result() const { return nlohmann::json::parse(file_content(folder_.file("result.json"))); }

  TemporaryFolder folder_;
};

/// The whole report. What is drawn changes with the cases of the op table, the report's form does not.
TEST_F(Fuzz, ReportsAFaultOnOneRank) {
  const auto run = search();
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_TRUE(std::regex_match(
      run.out,
      std::regex(
          "FAILED  mesh::weight_gradient/layouts\n"
          "  what     mesh::weight_gradient\\(.*\\) on mesh .*, .* domain, .* inputs: result 0 .* gives .*, expected "
          ".*\n"
          "  again    lockstep fuzz ops --case 'mesh::weight_gradient/layouts@[0-9a-f]+:[0-9]+[0-9:.]*'\n"
          "  case     .*/mesh__weight_gradient_layouts_[0-9a-f]+.case\n"
          "fuzz ops --seed 7: [0-9]+ cases of 1 checks in [0-9.]+ s on [0-9]+ cores?, [0-9]+ a second and core\n"
          "[0-9]+ comparisons with one device, 0 calls refused as they should be, 0 cases left out, 1 failures\n")))
      << run.out;
}

TEST_F(Fuzz, TellsPrograms) {
  search();
  const auto json = result();
  EXPECT_GT(json["cases"], 0);
  EXPECT_GT(json["cases_per_second"], 0);
  ASSERT_EQ(json["failures"].size(), 1u);
  EXPECT_THAT(json["failures"][0]["case"].get<std::string>(), StartsWith("mesh::weight_gradient/layouts@"));
  EXPECT_THAT(json["failures"][0]["message"].get<std::string>(), HasSubstr("expected"));
}

/// By its name and by its file, to the same words; without the fault it holds.
TEST_F(Fuzz, AFailureIsRunAgainAlone) {
  search();
  const auto failure = result()["failures"][0];
  const auto name = failure["case"].get<std::string>(), message = failure["message"].get<std::string>();
  for (const auto& one : {name, folder_.file("found")}) {
    const auto again = faulty("fuzz ops --case '" + one + "'");
    EXPECT_EQ(again.code, 3) << again.err;
    EXPECT_THAT(again.out, HasSubstr(message));
    const auto shipped = run_lockstep("fuzz ops --case '" + one + "'", "OMP_NUM_THREADS=1 ");
    EXPECT_EQ(shipped.code, 0) << shipped.out;
    EXPECT_EQ(shipped.out, name + " holds\n1 cases, 0 failures\n");
  }
}

TEST_F(Fuzz, SaysThatAStoredCaseIsAnotherNow) {
  folder_.write("old.case", "layouts layouts/values@5eed:100\ndraws 0000000000000001\n# what it was\n");
  folder_.write("gone.case", "layouts layouts/values@5eed:100:99.99\ndraws 0000000000000001\n# what it was\n");
  const auto run = run_lockstep("fuzz layouts --case " + folder_.path());
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out,
            "layouts/values@5eed:100:99.99 is drawn otherwise now\nlayouts/values@5eed:100 is drawn otherwise now\n"
            "2 cases, 0 failures; 2 are drawn otherwise than when they were written\n");
}

TEST_F(Fuzz, RefusesWithOneLine) {
  folder_.write("wrong.case", "ops mm@\n");
  folder_.write("other.case", "steps steps/mlp@5eed:100\n");
  const std::pair<std::string, const char*> refusals[] = {
      {"fuzz", "kind is required"},
      {"fuzz op", "op is not a kind. Did you mean ops?"},
      {"fuzz ops --op mn", "mn is no row of the op table (lockstep rules lists them). Did you mean"},
      {"fuzz layouts --op mm", "--op chooses among ops; layouts have none."},
      {"fuzz ops --case mm", "mm is not the name of a case; expected CHECK@SEED:SIZE, for example"},
      {"fuzz ops --case mm/layout@5eed:100", "mm/layout is no check. Did you mean mm/layouts?"},
      {"fuzz ops --case mm/layouts@5eed:100:99", "there is no such case any more"},
      {"fuzz ops --case " + folder_.file("wrong.case"), "mm@ is not the name of a case"},
      {"fuzz ops --case " + folder_.file("other.case"), "is a case of steps, not of ops."},
      {"fuzz ops --case jobs", "jobs holds no case files (*.case)."},
      {"fuzz ops --case mm/layouts@5eed:100 --seed 1", "--seed excludes --case"},
      {"fuzz ops --seconds 1 --cases 2", "excludes"},
      {"fuzz ops --seconds -1", "--seconds"},
      {"fuzz ops --jobs 0", "--jobs"},
      {"fuzz ops --seed x", "--seed"},
      {"fuzz ops --op mm --record file.json", "--record tells of the whole table"},
      {"fuzz layouts --record file.json", "--record tells of the whole table"},
      {"fuzz ops --training.steps 2", "--training.steps is a key of jobs; lockstep fuzz takes no job."}};
  for (const auto& [arguments, text] : refusals) {
    const auto run = run_lockstep(arguments);
    EXPECT_EQ(run.code, 2) << arguments;
    EXPECT_THAT(run.err, StartsWith("lockstep: ")) << arguments;
    EXPECT_THAT(run.err, HasSubstr(text)) << arguments;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(run.out, "");
  }
}

/// What `lockstep rules` shows; nothing where something failed.
TEST_F(Fuzz, RecordsWhatWasComparedOfEachRow) {
  const auto file = folder_.file("checked.json");
  EXPECT_EQ(faulty("fuzz ops --cases 2000 --seed 7 -q --record " + file).code, 3);
  EXPECT_FALSE(std::filesystem::exists(file));
  ASSERT_EQ(run_lockstep("fuzz ops --cases 2000 --seed 7 -q --record " + file, "OMP_NUM_THREADS=1 ").code, 0);
  const auto json = nlohmann::json::parse(file_content(file));
  EXPECT_GT(json["cases"]["mm"], 0);
  EXPECT_THAT(json["when"].get<std::string>(), MatchesRegex("20[0-9]+-[0-9]+-[0-9]+"));
  EXPECT_THAT(json["rules"].get<std::string>(), MatchesRegex("[0-9a-f]{16}"));
}

/// Counts of other rules than these are none.
TEST_F(Fuzz, RulesShowWhatWasCheckedOfThemselves) {
  const auto run = run_lockstep("rules --json " + folder_.file("result.json"));
  const auto recorded = nlohmann::json::parse(file_content(LOCKSTEP_SOURCE_DIR "/tests/rule_cases.json"));
  const bool same = result()["checked_these_rules"];
  EXPECT_THAT(run.out, HasSubstr(same ? "checked: these very rules, on " : "checked: not since "));
  EXPECT_EQ(result()["checked_when"], recorded["when"]);
  for (const auto& row : result()["rows"])
    if (row["op"] == "mm") EXPECT_EQ(row["checked"], same ? recorded["cases"]["mm"].get<int64_t>() : 0);
}

TEST_F(Fuzz, CaseFilesThatCannotBeWrittenAreExitCode5) {
  const auto run =
      run_binary(LOCKSTEP_FAULTY_BINARY,
                 fmt::format("fuzz ops --op {} --cases 300 --seed 7 -q --failures /dev/null/found", kOp), kFault);
  EXPECT_EQ(run.code, 5) << run.err;
  EXPECT_EQ(run_lockstep("fuzz ops --record no/such/folder/file.json").code, 5);
}

/// A finding of verify, its case made smaller, and that run again: with the fault it differs, without it agrees.
TEST_F(Fuzz, ShrinksTheCaseOfAFinding) {
  const auto job = write_small_job(folder_);
  const auto found = run_binary(LOCKSTEP_FAULTY_BINARY, "verify " + job + " -q --meshes dp_shard=2,tp=2", kFault);
  ASSERT_EQ(found.code, 3) << found.err;
  std::smatch file;
  ASSERT_TRUE(std::regex_search(found.out, file, std::regex("lockstep replay --case (\\S+)"))) << found.out;
  const auto smallest = folder_.file("smallest.h5");
  const auto run = run_binary(
      LOCKSTEP_FAULTY_BINARY,
      fmt::format("shrink {} --seconds 20 --output {} --json {}", file[1].str(), smallest, folder_.file("result.json")),
      kFault);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("before     mesh::weight_gradient("));
  EXPECT_THAT(run.out, HasSubstr("again      lockstep replay --case " + smallest));
  EXPECT_THAT(result()["after"].get<std::string>(), MatchesRegex(".*, 1[]].* on [a-z_]+=2"));
  EXPECT_EQ(run_binary(LOCKSTEP_FAULTY_BINARY, "replay --case " + smallest, kFault).code, 3);
  EXPECT_EQ(run_lockstep("replay --case " + smallest, "OMP_NUM_THREADS=1 ").code, 0);
  const auto agrees = run_lockstep("shrink " + smallest, "OMP_NUM_THREADS=1 ");
  EXPECT_EQ(agrees.code, 2);
  EXPECT_EQ(agrees.err,
            "lockstep: " + smallest + ": it agrees with one device here: there is nothing to make smaller.\n");
}

TEST_F(Fuzz, ShrinkRefusesWhatIsNoCase) {
  folder_.write("text.h5", "no HDF5\n");
  EXPECT_EQ(run_lockstep("shrink").code, 2);
  EXPECT_EQ(run_lockstep("shrink " + folder_.file("text.h5")).code, 5);
  EXPECT_EQ(run_lockstep("shrink " + folder_.file("none.h5")).code, 5);
  EXPECT_EQ(run_lockstep("shrink " + folder_.file("text.h5") + " --seconds 0").code, 2);
}

}  // namespace
}  // namespace lockstep

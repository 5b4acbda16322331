// `lockstep report` on what runs wrote, and on what they did not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/replay/view/well_formed.h"
#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Report : public ::testing::Test {
 protected:
  void expect_refused(const std::string& arguments, int code, const std::string& text) {
    const auto run = run_lockstep("report " + arguments);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_EQ(run.err, "lockstep: " + text + "\n");
    EXPECT_EQ(run.out, "");
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_), out_ = folder_.file("out");
};

TEST_F(Report, DrawsWhatARunWrote) {
  ASSERT_EQ(run_lockstep("train " + job_ + " -q").code, 0);
  const auto json = folder_.file("report.json");
  const auto run = run_lockstep("report " + out_ + " --json " + json);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("out        1 to 4"), HasSubstr("wrote " + out_ + "/report.html\n")));
  const auto html = file_content(out_ + "/report.html");
  EXPECT_EQ(testing::fault_of(html), "");
  for (const char* title : {"Loss", "Gradient norm", "Learning rate", "Tokens a second", "Operations a second",
                            "Share of the peak", "Time of a step", "Memory"})
    EXPECT_THAT(html, HasSubstr(std::string("<h2>") + title + "</h2>"));
  EXPECT_THAT(html, HasSubstr("mlp debugmodel on dp_shard=2, 8 x 16 tokens a step"));
  const auto result = nlohmann::json::parse(file_content(json));
  EXPECT_EQ(result.at("page"), out_ + "/report.html");
  const auto& first = result.at("runs").at(0);
  EXPECT_EQ(first.at("steps"), 4);
  EXPECT_EQ(first.at("fields").at("loss").at("last").at("step"), 4);
  EXPECT_TRUE(first.at("fields").at("communication_seconds").at("last").is_null());
}

TEST_F(Report, ComparesRunsAndReadsOldOnes) {
  std::filesystem::create_directories(folder_.file("old"));
  folder_.write("old/metrics.jsonl",
                "{\"step\":1,\"loss\":5.6,\"seconds\":1}\n{\"step\":2,\"loss\":null,\"seconds\":2}\n");
  ASSERT_EQ(run_lockstep("train " + job_ + " -q").code, 0);
  const auto page = folder_.file("both.html");
  const auto run = run_lockstep("report " + out_ + " " + folder_.file("old") + " --html " + page);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(file_content(page),
              AllOf(HasSubstr("<h1>2 trainings</h1>"), HasSubstr("<title>old, step 1: 5.6</title>")));
  EXPECT_FALSE(std::filesystem::exists(out_ + "/report.html"));
}

TEST_F(Report, SaysWhatIsMissing) {
  expect_refused(out_, 2, out_ + " is no folder; expected one that lockstep train wrote (job.dump_folder).");
  std::filesystem::create_directories(out_);
  expect_refused(out_, 2,
                 out_ + " has no metrics.jsonl; expected a folder that lockstep train wrote (job.dump_folder).");
  folder_.write("out/metrics.jsonl", "");
  expect_refused(out_, 2, out_ + "/metrics.jsonl has no step: its run has not finished one.");
  folder_.write("out/metrics.jsonl", "{\"step\":1,\"loss\":8}\nstep 2\n{\"step\":3,\"loss\":8}\n");
  expect_refused(out_, 5,
                 out_ +
                     "/metrics.jsonl:2: it is no JSON; expected a line as docs/metrics.md shows it. If nobody needs "
                     "the line, remove it; the others are fine to go on with.");
  EXPECT_FALSE(std::filesystem::exists(out_ + "/report.html"));
}

TEST_F(Report, SaysWhatDoesNotFitOnAPage) {
  std::filesystem::create_directories(out_);
  folder_.write("out/metrics.jsonl", "{\"step\":1,\"loss\":8}\n");
  expect_refused(out_ + " " + out_ + "/", 2, out_ + " and " + out_ + "/ are the same folder.");
  expect_refused("1 2 3 4 5 6 7 8", 2, "8 runs are too many for one page; 7 at most can be told apart.");
  expect_refused(out_ + " --html /nowhere/page.html", 5,
                 "/nowhere/page.html: cannot be written: there is no folder /nowhere.");
  expect_refused("", 2, "outputs is required. 'lockstep report --help' tells more.");
}

}  // namespace
}  // namespace lockstep

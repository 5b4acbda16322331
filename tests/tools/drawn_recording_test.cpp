// Recordings drawn: pages and traces of their time lines, and what `trace dump` says of a step.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/replay/view/well_formed.h"
#include "tests/tools/recording.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DrawnRecording : public Recording {};

TEST_F(DrawnRecording, PagesAreWritten) {
  ASSERT_EQ(train("").code, 0);
  const auto page = folder_.file("page.html"), chrome = folder_.file("chrome.json");
  const auto run = run_lockstep("trace timeline " + traces_ + " --step 2 --html " + page + " --chrome " + chrome);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(testing::fault_of(file_content(page)), "");
  EXPECT_THAT(file_content(page),
              AllOf(HasSubstr("<h1>test: step 2, "), HasSubstr("<dt>mesh</dt><dd>dp_shard=2, 2 ranks</dd>"),
                    HasSubstr("<dt>step</dt><dd>2 of 4</dd>"), HasSubstr("<dt>model</dt><dd>mlp debugmodel</dd>"),
                    HasSubstr("One process simulated ranks 0, 1"), HasSubstr(">ranks 0, 1 ops</text>"),
                    HasSubstr("all_gather on dp_shard"), Not(HasSubstr("<script")), Not(HasSubstr("http"))));
  const auto events = nlohmann::json::parse(file_content(chrome)).at("traceEvents");
  const auto is_op = [](const auto& event) { return event.at("ph") == "X" && event.at("pid") == 1; };
  EXPECT_GT(std::count_if(events.begin(), events.end(), is_op), 10);
  EXPECT_THAT(run_lockstep("trace dump " + traces_ + " --rank 1 --step 2").out,
              AllOf(HasSubstr("rank 1 of 2, step 2"), HasSubstr("linear #0"), HasSubstr("reduce_scatter on dp_shard")));
}

TEST_F(DrawnRecording, OfProcessesIsDrawnProcessByProcess) {
  ASSERT_EQ(train("", "launch -n 2 ").code, 0);
  const auto page = folder_.file("page.html");
  ASSERT_EQ(run_lockstep("trace timeline " + traces_ + " --html " + page).code, 0);
  EXPECT_THAT(file_content(page), AllOf(HasSubstr(">rank 0 ops</text>"), HasSubstr(">rank 1 ops</text>"),
                                        HasSubstr("<dt>step</dt><dd>4 of 4</dd>"), Not(HasSubstr("simulated"))));
}

/// What one rank lost is not drawn beside another step of the others.
TEST_F(DrawnRecording, OfRanksThatHaveOtherStepsIsDrawnWhereAllHaveOne) {
  ASSERT_EQ(train("").code, 0);
  auto index = file_content(traces_ + "/rank1.index");
  index.erase(index.rfind('\n', index.size() - 2) + 1);
  folder_.write("traces/rank1.index", index);
  const auto page = folder_.file("page.html");
  ASSERT_EQ(run_lockstep("trace timeline " + traces_ + " --html " + page).code, 0);
  EXPECT_THAT(file_content(page), HasSubstr("<dt>step</dt><dd>3 of 4</dd>"));
  ASSERT_EQ(run_lockstep("trace timeline " + traces_ + " --rank 0 --html " + page).code, 0);
  EXPECT_THAT(file_content(page),
              AllOf(HasSubstr("<dt>step</dt><dd>4 of 4</dd>"), HasSubstr("1 of 2 ranks are shown")));
}

}  // namespace
}  // namespace lockstep

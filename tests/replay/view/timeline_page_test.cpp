// The page of `lockstep trace timeline --html` from recordings made by hand: what it says and draws, to the digit.
#include "replay/view/timeline_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/view/timeline_drawing.h"
#include "tests/replay/view/sample_step.h"
#include "tests/replay/view/well_formed.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::checked_page;
using lockstep::testing::count_of;
using lockstep::testing::SampleStep;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
constexpr uint64_t kMs = 1'000'000;

std::string checked(const std::vector<StepRecording>& ranks, const TimelineHead& head = {}) {
  return checked_page(timeline_page(ranks, head));
}

StepRecording of_rank(int rank, uint64_t shift = 0) {
  return SampleStep(rank, 2)
      .op("add", 0, 20 * kMs + shift, Phase::kForward, 300)
      .op("mm", 20 * kMs + shift, 70 * kMs, Phase::kForward, 1'000)
      .collective(CollectiveKind::kAllGather, "tp", 70 * kMs, 80 * kMs, 4'000)
      .op("adamw", 80 * kMs, 100 * kMs, Phase::kOptimizer)
      .recording;
}

TEST(TimelinePage, SaysWhatTheStepWas) {
  const TimelineHead head{"a <demo>", {{"mesh", "tp=2, 2 ranks"}, {"model", "llama3 \"tiny\""}}};
  EXPECT_THAT(checked({of_rank(0), of_rank(1)}, head),
              AllOf(HasSubstr("<title>a &lt;demo&gt;</title>"), HasSubstr("<h1>a &lt;demo&gt;: step 2, 100 ms</h1>"),
                    HasSubstr("<dt>mesh</dt><dd>tp=2, 2 ranks</dd>"),
                    HasSubstr("<dt>model</dt><dd>llama3 &quot;tiny&quot;</dd>"),
                    HasSubstr("<dt>received</dt><dd>4 kB by each rank, 8 kB by the 2 shown</dd>"),
                    Not(HasSubstr("ended early"))));
}

TEST(TimelinePage, SaysWhatCostsMostBeforeItDraws) {
  const auto page = checked({of_rank(0), of_rank(1)});
  size_t last = 0;
  for (const char* row :
       {"<h2>What costs most</h2>", "\"what\">mm</td>",
        "\"time\">50.0 ms</td><td data-column=\"share\">50.0 %</td><td data-column=\"times\">1</td>"
        "<td data-column=\"bytes\">2 kB</td>",
        "\"what\">adamw</td>", "\"share\">20.0 %", "\"what\">add</td>", "\"what\">all_gather on tp</td>",
        "class=\"co\"",
        "\"time\">10.0 ms</td><td data-column=\"share\">10.0 %</td><td data-column=\"times\">1</td><td "
        "data-column=\"bytes\">8 kB</td>",
        "<em>no op, no collective</em>", "\"time\">0</td>", "<h2>The whole step</h2>", "<h2>Rank by rank</h2>"}) {
    const auto at = page.find(row, last);
    EXPECT_NE(at, page.npos) << row;
    if (at != page.npos) last = at;
  }
}

TEST(TimelinePage, ShowsSimulatedRanksAsOneProcess) {
  const auto page = checked({of_rank(0), of_rank(1)});
  EXPECT_THAT(page, AllOf(HasSubstr("One process simulated ranks 0, 1: "), HasSubstr(">ranks 0, 1 ops</text>"),
                          HasSubstr("one process: ranks 0, 1"), Not(HasSubstr("rank 1 ops")),
                          Not(HasSubstr("a clock of its own"))));
  EXPECT_EQ(count_of(page, ">collectives</text>"), 3U) << "of the step, forward and optimizer, once each";
}

TEST(TimelinePage, ShowsProcessesOneByOne) {
  const auto page = checked({of_rank(0), of_rank(1, 1)});
  EXPECT_THAT(page,
              AllOf(HasSubstr(">rank 0 ops</text>"), HasSubstr(">rank 1 ops</text>"),
                    HasSubstr("Each process has a clock of its own"), HasSubstr("Times of all processes are added up"),
                    HasSubstr("<td data-column=\"longest\">rank 0: 50.0 ms</td>"), Not(HasSubstr("simulated"))));
}

TEST(TimelinePage, HasAColumnOfTheLongestWhereThereAreSeveral) {
  const std::string columns = "<th>what</th><th></th><th>time</th><th>share</th><th>times</th><th>bytes</th>";
  EXPECT_THAT(checked({of_rank(0)}), HasSubstr(columns + "</tr>"));
  EXPECT_THAT(checked({of_rank(0), of_rank(1, 1)}), HasSubstr(columns + "<th>longest</th></tr>"));
}

TEST(TimelinePage, SaysWhatIsNotRecorded) {
  EXPECT_THAT(checked({of_rank(1)}), HasSubstr("1 of 2 ranks are shown. Where one process simulated them all"));
  auto early = of_rank(0);
  early.complete = false, early.reason = "loss <nan>";
  early.machine = {{"device", "cuda, H100"}};
  EXPECT_THAT(checked({early}),
              AllOf(HasSubstr("<dt>ended early</dt><dd>loss &lt;nan&gt;</dd>"), HasSubstr("not what the GPU took"),
                    HasSubstr("When the step itself ended is not recorded")));
}

TEST(TimelinePage, SpeaksOfAGpuWhereOneWas) {
  for (const auto& [key, value] : {std::pair("device", "cpu"), {"processor", "cuda"}}) {
    auto step = of_rank(0);
    step.machine = {{key, value}};
    EXPECT_THAT(checked({step}), Not(HasSubstr("not what the GPU took"))) << key;
  }
}

TEST(TimelinePage, OfAStepWithoutLengthHasNoShares) {
  EXPECT_THAT(checked({SampleStep().op("add", 0, 0).recording}),
              AllOf(HasSubstr("\"share\">0.0 %</td>"), Not(HasSubstr("100.0 %"))));
  EXPECT_THAT(checked({SampleStep().op("add", 0, 1).recording}), HasSubstr("\"share\">100.0 %</td>"));
}

TEST(TimelinePage, HasAScaleForEachPhase) {
  const auto page = checked({of_rank(0), of_rank(1)});
  EXPECT_THAT(page,
              AllOf(HasSubstr("<strong>forward</strong> 80.0 ms, 80.0 %</summary>"),
                    HasSubstr("<strong>optimizer</strong> 20.0 ms, 20.0 %</summary>"), Not(HasSubstr("in pieces of"))));
}

TEST(TimelinePage, DrawsLongPhasesInPieces) {
  SampleStep step;
  for (uint64_t i = 0; i < 60; ++i) step.op("mm", i * kMs, (i + 1) * kMs);
  const auto page = checked({step.recording});
  EXPECT_THAT(page, HasSubstr("<summary>in pieces of 10 ms</summary>"));
  EXPECT_EQ(count_of(page, "<svg class=\"timeline\""), 2U + 6);
}

TEST(TimelinePage, OfNothingIsAPage) {
  EXPECT_THAT(checked({}), HasSubstr("No rank"));
  EXPECT_THAT(checked({SampleStep().recording}), HasSubstr("<h2>The whole step</h2>"));
}

TEST(TimelinePage, HoldsWhateverARecordingHolds) {
  auto crafted = of_rank(0);
  crafted.names.assign(crafted.names.size(), "</svg><script>\xff");
  for (auto& op : crafted.ops) op.id.phase = 200, op.end = ~uint64_t{0};
  crafted.collectives[0].kind = 99;
  EXPECT_THAT(checked({crafted}), AllOf(HasSubstr("unknown phase"), HasSubstr("kind 99 on ")));
}

// Drawing

std::string drawing(const std::vector<StepRecording>& ranks, TimeWindow window) {
  return timeline_drawing(processes_of(ranks), window);
}

/// The plot is from 120 to 1190: 10.7 for each ms of 100.
TEST(TimelineDrawing, PutsBarsAndTicksWhereTheyBelong) {
  const auto svg = drawing({of_rank(0)}, {0, 100 * kMs});
  EXPECT_THAT(svg,
              AllOf(HasSubstr("<rect class=\"p1\" x=\"120.00\" y=\"20\" width=\"214.00\" height=\"14\"><title>"
                              "microbatch 0, forward, add #0: 20.0 ms, from 0.000 ms on</title>"),
                    HasSubstr("<rect class=\"p1\" x=\"334.00\" y=\"20\" width=\"535.00\""),
                    HasSubstr("<rect class=\"p6\" x=\"976.00\" y=\"20\" width=\"214.00\""),
                    HasSubstr("<rect class=\"co\" x=\"869.00\" y=\"36\" width=\"107.00\" height=\"9\"><title>"
                              "all_gather on tp in microbatch 0, forward, redistribute #0: 10.0 ms, from 70.000 ms "
                              "on, 4 kB received</title>")));
  EXPECT_EQ(count_of(svg, "class=\"tick\""), 11U);
  EXPECT_THAT(svg, AllOf(HasSubstr("x=\"120.00\" y=\"11\" text-anchor=\"middle\">0</text>"),
                         HasSubstr("x=\"655.00\" y=\"11\" text-anchor=\"middle\">50 ms</text>"),
                         HasSubstr("x=\"1190.00\" y=\"11\" text-anchor=\"end\">100 ms</text>")));
}

TEST(TimelineDrawing, OfAWindowHasWhatIsInIt) {
  const auto svg = drawing({of_rank(0)}, {60 * kMs, 80 * kMs});
  EXPECT_THAT(svg, AllOf(HasSubstr("<rect class=\"p1\" x=\"120.00\" y=\"20\" width=\"535.00\""),
                         HasSubstr("<rect class=\"co\" x=\"655.00\" y=\"36\" width=\"535.00\""),
                         Not(HasSubstr("add #")), Not(HasSubstr("adamw")), HasSubstr(">60 ms</text>"),
                         HasSubstr(">62 ms</text>"), Not(HasSubstr(">58 ms</text>"))));
}

TEST(TimelineDrawing, MakesOneBarOfManyThatAreTooNarrow) {
  SampleStep step;
  for (uint64_t i = 0; i < 1000; ++i) step.op("add", 2 * i, 2 * i + 1);
  step.op("mm", 1 * kMs, 100 * kMs);
  const auto svg = drawing({step.recording}, {0, 100 * kMs});
  EXPECT_THAT(svg, HasSubstr("<title>1,000 short ops, 1.00 us together</title>"));
  EXPECT_EQ(count_of(svg, "<rect"), 2U);
}

TEST(TimelineDrawing, HasALegendOfWhatOccurs) {
  EXPECT_EQ(timeline_legend(processes_of(std::vector{of_rank(0)})),
            "<p><span class=\"key p1\"></span>forward\n<span class=\"key p6\"></span>optimizer\n"
            "<span class=\"key co\"></span>collectives\n</p>\n");
}

}  // namespace
}  // namespace lockstep::replay

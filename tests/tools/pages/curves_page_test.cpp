// The page of `lockstep report` from texts of metrics.jsonl: what is read, what is drawn, and that it is well-formed.
#include "tools/lockstep/reports/curves/curves_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "tests/replay/view/well_formed.h"
#include "tests/support/message_of.h"
#include "tools/lockstep/reports/curves/curve_numbers.h"
#include "tools/lockstep/reports/curves/curve_plot.h"

namespace lockstep::tool {
namespace {

using lockstep::testing::checked_page;
using lockstep::testing::count_of;
using lockstep::testing::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

RunCurves run_of(const std::string& text, const std::string& folder = "outputs/a") {
  auto run = parse_metrics(text, "m");
  run.folder = run.name = folder;
  return run;
}

std::string page_of(std::vector<RunCurves> runs) { return checked_page(curves_page(runs)); }

// What is read

TEST(RunCurves, AreTheNumbersOfEachStep) {
  const auto run = parse_metrics("{\"step\":1,\"loss\":8.5,\"mfu\":null}\n{\"step\":2,\"loss\":7,\"mfu\":0.5}\n", "m");
  EXPECT_THAT(run.steps, ElementsAre(1, 2));
  EXPECT_THAT(run.curve("loss"), ElementsAre(Pair(1, 8.5), Pair(2, 7.0)));
  EXPECT_TRUE(std::isnan(run.curve("mfu")[0].second));
  EXPECT_TRUE(run.curve("other").empty());
}

TEST(RunCurves, OfStepsThatWereTakenAgainTheLastCount) {
  const auto run = parse_metrics(
      "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":2}\n{\"step\":3,\"a\":3,\"b\":3}\n{\"step\":2,\"a\":20}\n", "m");
  EXPECT_THAT(run.steps, ElementsAre(1, 2));
  EXPECT_THAT(run.curve("a"), ElementsAre(Pair(1, 1.0), Pair(2, 20.0)));
  EXPECT_TRUE(run.curve("b").empty());
}

TEST(RunCurves, ADamagedLineIsNamed) {
  const std::string good = "{\"step\":1,\"loss\":8}\n";
  const auto of = [&](const std::string& bad) {
    return message_of<FileError>([&] { parse_metrics(good + bad, "out/metrics.jsonl"); });
  };
  EXPECT_EQ(
      of("{\"step\":2,\"lo"),
      "out/metrics.jsonl:2: it ends in the middle; expected a line as docs/metrics.md shows it. If nobody needs the "
      "line, remove it; the others are fine to go on with.");
  EXPECT_THAT(of("{\"step\":2,\"lo\n" + good), HasSubstr("out/metrics.jsonl:2: it is no JSON; "));
  EXPECT_THAT(of("\n" + good), HasSubstr(":2: it is no JSON; "));
  for (const char* bad : {"[]\n", "{}\n", "7\n", "{\"step\":1.5}\n", "{\"step\":\"2\"}\n"})
    EXPECT_THAT(of(bad), HasSubstr(":2: it has no step; ")) << bad;
  EXPECT_THAT(of("{\"step\":2,\"loss\":\"8\"}\n"), HasSubstr(":2: loss is no number; "));
  EXPECT_THAT(of("{\"step\":2,\"loss\":{}}\n"), HasSubstr(":2: loss is no number; "));
  EXPECT_THAT(of(std::string(200'000, '[')), HasSubstr(":2: it ends in the middle; ")) << "as deep as anybody likes";
}

// What is drawn

TEST(CurveNumbers, PassOverWhatIsNotFinite) {
  const StepCurve curve{{1, kNone}, {2, 3}, {3, 1}, {4, std::numeric_limits<double>::infinity()}, {5, 2}};
  const auto numbers = numbers_of(curve);
  EXPECT_EQ(numbers.first->first, 2);
  EXPECT_EQ(numbers.last->first, 5);
  EXPECT_EQ(numbers.lowest->first, 3);
  EXPECT_EQ(numbers.highest->first, 2);
  EXPECT_EQ(mean_of(curve), 2);
  EXPECT_FALSE(numbers_of({{1, kNone}}).first);
  EXPECT_FALSE(mean_of({}));
}

/// One high point of ten thousand is still seen, and so is a step without a number.
TEST(CurveNumbers, ThinningKeepsExtremesAndGaps) {
  StepCurve curve;
  for (int64_t step = 1; step <= 10'000; ++step) curve.emplace_back(step, std::sin(static_cast<double>(step)));
  curve[4321].second = 50, curve[7777].second = -50, curve[100].second = kNone;
  const auto few = thinned(curve, 400);
  EXPECT_LE(few.size(), 400U);
  EXPECT_GE(few.size(), 200U);
  EXPECT_TRUE(std::ranges::is_sorted(few, {}, &std::pair<int64_t, double>::first));
  EXPECT_EQ(numbers_of(few).highest, std::pair(int64_t{4322}, 50.0));
  EXPECT_EQ(numbers_of(few).lowest, std::pair(int64_t{7778}, -50.0));
  EXPECT_EQ(std::ranges::count_if(few, [](const auto& point) { return std::isnan(point.second); }), 1);
  EXPECT_EQ(thinned(few, 400).size(), few.size()) << "what is few already stays";
}

TEST(ValueText, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(value_text(2.41536, Unit::kNumber), "2.415");
  EXPECT_EQ(value_text(0.00033, Unit::kNumber), "0.00033");
  EXPECT_EQ(value_text(1935.8, Unit::kCount), "1,936");
  EXPECT_EQ(value_text(0.25, Unit::kCount), "0.25");
  EXPECT_EQ(value_text(335822848, Unit::kBytes), "336 MB");
  EXPECT_EQ(value_text(0.2646, Unit::kSeconds), "265 ms");
  EXPECT_EQ(value_text(0, Unit::kSeconds), "0");
  EXPECT_EQ(value_text(0.7054, Unit::kShare), "70.5%");
}

/// From the path, point by point: x from 58 to 352, y from 180 (the lowest mark) up to 10 (the highest).
TEST(Chart, DrawsEachStepWhereItBelongs) {
  const StepCurve curve{{1, 0}, {2, 5}, {3, kNone}, {4, 10}, {5, 0}};
  const auto html = chart_html({"Loss", Unit::kNumber, false, {{"mean", &curve}}});
  EXPECT_THAT(html, HasSubstr("<path class=\"line l0\" d=\"M58.0 180.0L131.5 95.0M278.5 10.0L352.0 180.0\"/>"));
  EXPECT_THAT(html, HasSubstr("<title>mean, step 4: 10</title>"));
  EXPECT_THAT(html, HasSubstr("aria-label=\"Loss by step; mean: from 0 to 0\""));
  EXPECT_THAT(html, AllOf(HasSubstr("10 at 4</td>"), HasSubstr("0 at 5</td>"))) << "the numbers, as a table";
}

TEST(Chart, OfOneStepOrOneValueIsDrawn) {
  for (const double value : {0.0, 3.0, -2.0, 1e-300, 1e300})
    for (const StepCurve& curve : {StepCurve{{7, value}}, StepCurve{{7, value}, {8, value}}})
      for (const bool from_zero : {false, true})
        EXPECT_THAT(chart_html({"Loss", Unit::kNumber, from_zero, {{"mean", &curve}}}),
                    AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf")), HasSubstr("<circle")))
            << value;
}

// The page

TEST(CurvesPage, OfOneRunHasAChartForEachGroup) {
  const auto html = page_of({run_of(
      "{\"step\":1,\"loss\":8,\"max_loss\":9,\"grad_norm\":2,\"tokens_per_second\":100,\"memory_bytes\":1000,"
      "\"mfu\":null,\"unknown\":5}\n{\"step\":2,\"loss\":7,\"max_loss\":8,\"grad_norm\":1,\"tokens_per_second\":300,"
      "\"memory_bytes\":2000,\"mfu\":null,\"unknown\":6}\n")});
  for (const char* title : {"Loss", "Gradient norm", "Tokens a second", "Memory"})
    EXPECT_THAT(html, HasSubstr(std::string("<h2>") + title + "</h2>"));
  EXPECT_EQ(count_of(html, "<section class=\"chart\">"), 4U) << "nothing is known of the others";
  EXPECT_THAT(html, AllOf(HasSubstr("largest of a rank"), HasSubstr("<h1>Training of outputs/a</h1>"),
                          HasSubstr("<td data-column=\"last loss\">7</td>"), HasSubstr("1 to 2"),
                          HasSubstr("<td data-column=\"mean tokens/s\">200</td>"), HasSubstr("not known")));
}

/// A run is drawn alike in all charts, also where the ones before it have no such number.
TEST(CurvesPage, OfSeveralRunsHasAChartForEachNumber) {
  const auto first = run_of("{\"step\":1,\"loss\":8}\n", "a"),
             second = run_of("{\"step\":1,\"loss\":7,\"mfu\":0.5}\n", "b");
  const auto html = page_of({first, second});
  EXPECT_THAT(html, AllOf(HasSubstr("<h1>2 trainings</h1>"), HasSubstr("<h2>Loss: mean over tokens</h2>"),
                          HasSubstr("<h2>Share of the peak</h2>"), HasSubstr("<circle class=\"dot l1\" "),
                          HasSubstr("<title>b, step 1: 50%</title>")));
  const auto share = html.substr(html.find("<h2>Share of the peak</h2>"));
  EXPECT_THAT(share, Not(HasSubstr("dot l0")));
}

TEST(CurvesPage, NamesAreAnybodys) {
  auto run = run_of("{\"step\":1,\"loss\":8}\n", "<script>&\"");
  run.job = "<b>";
  EXPECT_THAT(page_of({run}), AllOf(HasSubstr("&lt;script&gt;&amp;&quot;"), HasSubstr("&lt;b&gt;")));
}

TEST(CurvesPage, NamesAreAsShortAsTheyCanBe) {
  const auto names = [](std::vector<std::string> folders) {
    std::vector<RunCurves> runs;
    for (auto& folder : folders) runs.push_back(run_of("{\"step\":1}\n", folder));
    name_runs(runs);
    std::vector<std::string> all;
    for (const auto& run : runs) all.push_back(run.name);
    return all;
  };
  EXPECT_THAT(names({"out/a/", "b"}), ElementsAre("a", "b"));
  EXPECT_THAT(names({"x/a", "y/a"}), ElementsAre("x/a", "y/a"));
  EXPECT_THAT(names({"."}), ElementsAre("."));
}

}  // namespace
}  // namespace lockstep::tool

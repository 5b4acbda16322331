// The plot of a page of verification, and the file that the page is: when it is written, and when that may fail.
#include "tools/lockstep/reports/page_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "tests/support/temporary_folder.h"
#include "tests/tools/pages/sample_page.h"
#include "tools/lockstep/reports/page/divergence_plot.h"

namespace lockstep::tool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DivergencePlot, HeightsAreLogarithmic) {
  EXPECT_EQ(height_of(0), 0);
  EXPECT_EQ(height_of(1e-300), 0);
  EXPECT_NEAR(height_of(1e-6), 0.5, 1e-12);
  EXPECT_EQ(height_of(1e300), 1);
  EXPECT_EQ(height_of(std::numeric_limits<double>::quiet_NaN()), 1);
}

TEST(DivergencePlot, DrawsTheWorstOfManySteps) {
  PlotLine line{"tp=2", {}};
  for (int64_t step = 1; step <= 100'000; ++step) line.points.emplace_back(step, step == 77'777 ? 1.0 : 0.0);
  const auto svg = divergence_plot({&line, 1}, 0);
  EXPECT_LT(svg.size(), 20'000U);
  const auto path = svg.substr(svg.find("class=\"line l0\""));
  EXPECT_NE(path.find(" 43.2"), path.npos) << "the height of 1";
  EXPECT_EQ(path.find(" 43.2"), path.rfind(" 43.2"));
}

TEST(DivergencePlot, OfNothingIsAnEmptyScale) {
  const PlotLine none{"tp=2", {}};
  EXPECT_THAT(divergence_plot({&none, 1}, 0), AllOf(HasSubstr(">equal</text>"), Not(HasSubstr("<circle"))));
}

// The file

TEST(PageFile, IsWrittenAgainAsResultsCome) {
  const TemporaryFolder folder;
  PageFile file(folder.file("page.html"));
  file.page = sample_page(2);
  file.page.finished = false;
  file.begin();
  EXPECT_THAT(file_content(folder.file("page.html")), HasSubstr("No mesh has been compared yet."));
  file.page.meshes.push_back(agreeing_mesh("tp=2"));
  file.update();
  EXPECT_THAT(file_content(folder.file("page.html")), HasSubstr("1 of 2 meshes compared so far"));
  file.page.meshes.push_back(agreeing_mesh("tp=3"));
  file.update_now_and_then();
  EXPECT_THAT(file_content(folder.file("page.html")), Not(HasSubstr("<strong>tp=3"))) << "too soon";
  file.finish();
  EXPECT_THAT(file_content(folder.file("page.html")), HasSubstr("All 2 meshes do what one device does."));
}

TEST(PageFile, KeepsWhatWasThereWhenTheCommandEndsEarly) {
  const TemporaryFolder folder;
  PageFile file(folder.file("page.html"));
  file.page = sample_page(1);
  file.page.meshes = {differing_mesh("tp=2")};
  file.end_by("no memory");
  EXPECT_THAT(file_content(folder.file("page.html")), AllOf(HasSubstr("no memory"), HasSubstr("id=\"finding-1\"")));
}

TEST(PageFile, FailsAtTheBeginningAndAtTheEndOnly) {
  PageFile file("/nowhere/page.html");
  EXPECT_THROW(file.begin(), FileError);
  EXPECT_NO_THROW(file.update());
  EXPECT_NO_THROW(file.end_by("a reason"));
  EXPECT_THROW(file.finish(), FileError);
}

TEST(PageFile, WithoutAPathWritesNothing) {
  PageFile file("");
  EXPECT_FALSE(file.is_wanted());
  EXPECT_NO_THROW(file.begin());
  EXPECT_NO_THROW(file.update());
  EXPECT_NO_THROW(file.end_by(""));
  EXPECT_NO_THROW(file.finish());
}

}  // namespace
}  // namespace lockstep::tool

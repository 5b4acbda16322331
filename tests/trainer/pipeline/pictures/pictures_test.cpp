#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/trainer/pipeline/drawn_schedule.h"
#include "trainer/pipeline/pictures/svg_picture.h"
#include "trainer/pipeline/pictures/text_picture.h"

namespace lockstep::pipeline {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

std::string picture(const char* name, PipelineSize size, int64_t columns, const Durations& durations = {}) {
  const auto schedule = make_schedule(name, size);
  return text_picture(schedule, simulate(schedule, durations), columns);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(PipelinePicture, ShowsEachRanksActionsInTime) {
  EXPECT_EQ(picture("1F1B", {3, 1, 4}, 80),
            "rank 0  F0F1F2........B0--F3B1--..B2--..B3--\n"
            "rank 1  ..F0F1....B0--F2B1--F3B2--..B3--....\n"
            "rank 2  ....F0B0--F1B1--F2B2--F3B3--........\n"
            "F forward, B backward, and the microbatch\n");
}

TEST(PipelinePicture, TellsTheStagesOfARankApart) {
  EXPECT_EQ(
      picture("ZBVZeroBubble", {2, 2, 3}, 80),
      "rank 0  F0F1F2f0i0w0f1i1w1I0W0f2i2w2I1W1I2W2..\n"
      "rank 1  ..F0f0F1f1i0w0F2I0W0f2i1w1I1i2I2W1w2W2\n"
      "F forward, B backward, I its gradients of inputs, W those of weights, and the microbatch; small letters: the "
      "rank's second stage\n");
  EXPECT_EQ(picture("Interleaved1F1B", {1, 3, 1}, 80),
            "rank 0  0F01F02F02B0---1B0---0B0---\n"
            "F forward, B backward, and the microbatch; before it the stage\n");
}

TEST(PipelinePicture, FitsAndSaysWhatItCannotShow) {
  EXPECT_EQ(picture("1F1B", {2, 1, 3}, 24),
            "rank 0  01..B02B1.B2\n"
            "rank 1  .0B01B12B2..\n"
            "F forward, B backward, and the microbatch\n"
            "narrow ones have the last digit of the microbatch, backwards of one column their letter\n");
  EXPECT_EQ(picture("Interleaved1F1B", {2, 3, 1}, 30),
            "rank 0  0.0.0...B0..B0..B0\n"
            "rank 1  .0.0.0B0..B0..B0..\n"
            "F forward, B backward, and the microbatch; before it the stage\n"
            "narrow ones have the last digit of the microbatch, backwards of one column their letter\n");
  EXPECT_THAT(picture("GPipe", {4, 1, 40}, 80), HasSubstr("cut: the first 56 % of the time; --html draws all of it\n"));
}

TEST(PipelinePicture, TimesThatAreNoWholeNumbersKeepTheirPlaces) {
  EXPECT_EQ(picture("1F1B", {2, 1, 2}, 80, {{1, 2.5, 1, 1}, 0.5}),
            "rank 0  F0F1.......B0---..B1---\n"
            "rank 1  ...F0B0---F1B1---......\n"
            "F forward, B backward, and the microbatch\n");
}

/// One line for each rank, of one length, with no more columns than asked for.
RC_GTEST_PROP(PipelinePicture, LinesAreAlike, ()) {
  const auto schedule = (*drawn_schedule(5, 3, 12)).make();
  const auto columns = *rc::gen::inRange<int64_t>(40, 200);
  std::istringstream lines(text_picture(schedule, simulate(schedule), columns));
  std::string line, first;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::getline(lines, line);
    RC_ASSERT(line.starts_with(fmt::format("rank {} ", rank)));
    if (rank == 0) first = line;
    RC_ASSERT(line.size() == first.size() && line.size() <= static_cast<size_t>(columns));
  }
}

TEST(PipelinePicture, OfTheShortestBesideTheLongestIsNoWider) {
  const auto schedule = make_schedule("1F1B", {4, 1, 64});
  const auto text = text_picture(schedule, simulate(schedule, parse_durations("F=0.001,B=1000", "--times")), 80);
  EXPECT_LT(text.size(), 600U);
  EXPECT_THAT(text, ::testing::HasSubstr("cut: the first 0 % of the time"));
}

TEST(PipelineDrawing, HasABoxForEachAction) {
  const auto schedule = make_schedule("DualPipeV", {2, 2, 4});
  const auto svg = svg_picture(schedule, simulate(schedule));
  size_t actions = 0;
  for (const auto& rank : schedule.ranks) actions += rank.size();
  EXPECT_EQ(count(svg, "<rect "), actions);
  EXPECT_EQ(count(svg, "<title>0F3: "), 1U);
  EXPECT_EQ(count(svg, ">rank 1</text>"), 1U);
  EXPECT_EQ(count(svg, "<g>"), count(svg, "</g>"));
  EXPECT_TRUE(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
}

TEST(PipelineDurations, AreRead) {
  const auto durations = parse_durations("B=2.5,T=0.25", "--times");
  EXPECT_EQ(durations.of_kind, (std::array<double, kActionKinds>{1, 2.5, 1, 1}));
  EXPECT_EQ(durations.transfer, 0.25);
  EXPECT_EQ(parse_durations("F=4,B=8,I=4,W=3", "--times").of_kind, (std::array<double, kActionKinds>{4, 8, 4, 3}));
}

TEST(PipelineDurations, AnythingElseIsRefused) {
  for (const char* text : {"", "F", "F=", "F=0", "F=-1", "F=x", "X=1", "F=1x", "F=nan", "F=inf", "T=-1", "F=1e4",
                           "F=1e-4", "T=1001", "F =1"})
    EXPECT_EQ(message_of<BadInput>([&] { parse_durations(text, "--times"); }),
              "--times: \"" + std::string(text) +
                  "\" is no time. F, B, I, W (from 0.001 to 1000) or T (transfer, from 0), = and a number were "
                  "expected, such as F=1,B=2,I=1,W=1,T=0.")
        << text;
  EXPECT_THROW(parse_durations("F=1,", "--times"), BadInput);
}

}  // namespace
}  // namespace lockstep::pipeline

#include "trainer/pipeline/timeline.h"

#include <gtest/gtest.h>

#include "trainer/pipeline/schedule_csv.h"

namespace lockstep::pipeline {
namespace {

constexpr double kRounding = 1e-12;

/// Rank 0 has one stage, rank 1 the two behind it.
///
///   rank 0  F . . . . . . B B
///   rank 1  . F F B B B B . .
Timeline uneven() { return simulate(parse_schedule_csv("0F0,0B0\n1F0,2F0,2B0,1B0\n", "a.csv").schedule); }

TEST(PipelineTimeline, ARankWaitsInSharesOfItsTime) {
  const auto timeline = uneven();
  EXPECT_NEAR(timeline.length(), 9, kRounding);
  EXPECT_NEAR(timeline.busy(0), 3, kRounding);
  EXPECT_NEAR(timeline.span(1), 6, kRounding);
  EXPECT_NEAR(timeline.bubble(0), 6. / 9, kRounding);
  EXPECT_NEAR(timeline.bubble(1), 3. / 9, kRounding);
  EXPECT_NEAR(timeline.gaps(1), 0, kRounding);
}

TEST(PipelineTimeline, OfAllTheBubbleIsTheMeanAndTheGapTheLargest) {
  EXPECT_NEAR(uneven().bubble(), 4.5 / 9, kRounding);
  EXPECT_NEAR(uneven().gaps(), 6. / 9, kRounding);
}

TEST(PipelineTimeline, MovingTakesTimeBetweenRanksAlone) {
  const auto schedule = parse_schedule_csv("0F0,1F0,1B0,0B0\n2F0,2B0\n", "a.csv").schedule;
  const auto waits = parse_schedule_csv("0F0,1F0,1B0,0B0\n", "a.csv").schedule;
  EXPECT_NEAR(simulate(schedule, {{1, 2, 1, 1}, 0.5}).length(), 10, kRounding) << "there and back";
  EXPECT_NEAR(simulate(waits, {{1, 2, 1, 1}, 0.5}).length(), 6, kRounding);
}

}  // namespace
}  // namespace lockstep::pipeline

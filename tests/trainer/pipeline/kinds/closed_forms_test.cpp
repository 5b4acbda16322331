#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/trainer/pipeline/drawn_schedule.h"
#include "trainer/pipeline/check.h"
#include "trainer/pipeline/held_activations.h"
#include "trainer/pipeline/timeline.h"

/// What papers say of bubbles and activations, beside what simulation finds. p ranks, v stages per rank, m
/// microbatches.
namespace lockstep::pipeline {
namespace {

constexpr double kRounding = 1e-12;

double share(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

Timeline simulated(const char* name, int64_t p, int64_t v, int64_t m, const Durations& durations = {}) {
  return simulate(make_schedule(name, {p, v, m}), durations);
}

std::vector<int64_t> held(const char* name, int64_t p, int64_t v, int64_t m) {
  return held_activations(make_schedule(name, {p, v, m})).of_rank;
}

TEST(PipelineClosedForms, GPipeAndOneForwardOneBackwardWaitForTheOtherRanks) {
  for (const char* name : {"GPipe", "1F1B"})
    for (int64_t p = 1; p <= 9; ++p)
      for (int64_t m = 1; m <= 17; ++m) {
        const auto timeline = simulated(name, p, 1, m);
        EXPECT_NEAR(timeline.bubble(), share(p - 1, m + p - 1), kRounding) << name << " " << p << " " << m;
        EXPECT_NEAR(timeline.length(), static_cast<double>(3 * (m + p - 1)), kRounding);
      }
}

TEST(PipelineClosedForms, InterleavingDividesTheBubble) {
  for (int64_t p = 1; p <= 7; ++p)
    for (int64_t v = 1; v <= 4; ++v)
      for (int64_t rounds = 1; rounds <= 3; ++rounds)
        EXPECT_NEAR(simulated("Interleaved1F1B", p, v, rounds * p).bubble(), share(p - 1, v * rounds * p + p - 1),
                    kRounding)
            << p << " " << v << " " << rounds;
}

/// (p - 1) (F + I - W) of m (F + I + W) and that: Qi et al., "Zero Bubble Pipeline
/// Parallelism", section 2, from p microbatches on, where W takes no longer than I.
TEST(PipelineClosedForms, ZeroBubbleH1FillsTheBubbleWithWeightGradients) {
  for (const Durations durations : {Durations{}, Durations{{4, 8, 4, 3}, 0}, Durations{{3, 7, 4, 3}, 0}})
    for (int64_t p = 1; p <= 9; ++p)
      for (int64_t m = p; m <= 2 * p + 3; ++m) {
        const double f = durations.of_kind[0], i = durations.of_kind[2], w = durations.of_kind[3];
        const double bubble = static_cast<double>(p - 1) * (f + i - w), work = static_cast<double>(m) * (f + i + w);
        EXPECT_NEAR(simulated("ZBH1", p, 1, m, durations).bubble(), bubble / (work + bubble), kRounding)
            << p << " " << m;
      }
}

/// What is left over of a longer W delays who waits for the next I.
TEST(PipelineClosedForms, ZeroBubbleH1WaitsForLongWeightGradients) {
  EXPECT_NEAR(simulated("ZBH1", 2, 1, 2, {{1, 2, 1, 3}, 0}).bubble(), 1. / 11, kRounding);
  EXPECT_GT(simulated("ZBH1", 4, 1, 8, {{1, 2, 1, 2}, 0}).bubble(), 0.08);
}

TEST(PipelineClosedForms, ZeroBubbleVNeverWaitsWithEqualTimesAndMicrobatchesEnough) {
  for (int64_t p = 1; p <= 9; ++p)
    for (int64_t m = 1; m <= 4 * p; ++m) {
      const double gaps = simulated("ZBVZeroBubble", p, 2, m).gaps();
      if (m >= 2 * p - 1) {
        EXPECT_NEAR(gaps, 0, kRounding) << p << " " << m;
      } else {
        EXPECT_GT(gaps, 0.01) << p << " " << m;
      }
    }
}

TEST(PipelineClosedForms, GPipeHoldsAllAndOneForwardOneBackwardItsDistanceFromTheEnd) {
  for (int64_t p = 1; p <= 9; ++p)
    for (int64_t m = 1; m <= 17; ++m)
      for (int64_t rank = 0; rank < p; ++rank) {
        const auto index = static_cast<size_t>(rank);
        EXPECT_EQ(held("GPipe", p, 1, m)[index], m);
        EXPECT_EQ(held("1F1B", p, 1, m)[index], std::min(m, p - rank));
        EXPECT_EQ(held("ZBH1", p, 1, m)[index], std::min(m, p)) << "no more than the first rank of 1F1B";
      }
}

/// The forwards before the first backward of Megatron-LM, and the one beside it.
TEST(PipelineClosedForms, InterleavingHoldsItsWarmUp) {
  for (int64_t p = 1; p <= 7; ++p)
    for (int64_t v = 2; v <= 4; ++v)
      for (int64_t m = 1; m <= 3 * p; ++m) {
        const int64_t rounds = std::max<int64_t>(1, m / p), in_round = m / rounds;
        if (m % rounds != 0) continue;
        for (int64_t rank = 0; rank < p; ++rank)
          EXPECT_EQ(held("Interleaved1F1B", p, v, m)[static_cast<size_t>(rank)],
                    std::min(2 * (p - rank - 1) + (v - 1) * in_round + 1, v * m))
              << p << " " << v << " " << m << " " << rank;
      }
}

TEST(PipelineClosedForms, SchedulesInAVHoldTheSameOnEveryRank) {
  for (int64_t p = 1; p <= 9; ++p)
    for (int64_t m = 2 * p; m <= 4 * p; ++m)
      for (int64_t rank = 0; rank < p; ++rank) {
        EXPECT_EQ(held("ZBVZeroBubble", p, 2, m)[static_cast<size_t>(rank)], 2 * p) << p << " " << m << " " << rank;
        EXPECT_EQ(held("DualPipeV", p, 2, m)[static_cast<size_t>(rank)], std::min(2 * p + 1, 2 * m))
            << p << " " << m << " " << rank;
      }
}

RC_GTEST_PROP(PipelineClosedForms, EverySizeOfEveryKindCanBeCarriedOut, ()) {
  const auto drawn = *drawn_schedule();
  const auto schedule = drawn.make();
  check(schedule);
  RC_ASSERT(schedule.stages() == drawn.size.ranks * drawn.size.stages_per_rank);
  RC_ASSERT(schedule.name == drawn.kind->name);
}

/// No action begins before what it needs, or two at once, and every rank is as busy as its actions take.
RC_GTEST_PROP(PipelineClosedForms, TimesAreThoseOfTheActions, ()) {
  const auto schedule = (*drawn_schedule()).make();
  const Durations durations{{1.5, 3.5, 2, 1.25}, 0.5};
  const auto timeline = simulate(schedule, durations);
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    double end = 0, busy = 0;
    for (size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const auto& interval = timeline.ranks[rank][i];
      RC_ASSERT(interval.begin >= end);
      end = interval.end;
      busy += durations.of(schedule.ranks[rank][i].kind);
    }
    RC_ASSERT(std::abs(timeline.busy(static_cast<int64_t>(rank)) - busy) < 1e-9);
    RC_ASSERT(end <= timeline.length());
  }
}

}  // namespace
}  // namespace lockstep::pipeline

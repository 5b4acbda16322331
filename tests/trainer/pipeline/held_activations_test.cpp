#include "trainer/pipeline/held_activations.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "tests/trainer/pipeline/drawn_schedule.h"
#include "trainer/pipeline/schedule_csv.h"

namespace lockstep::pipeline {
namespace {

HeldActivations held(const std::string& csv) { return held_activations(parse_schedule_csv(csv, "a.csv").schedule); }

TEST(HeldActivations, GoWithTheGradientsOfWeights) {
  EXPECT_EQ(held("0F0,0B0,0F1,0B1\n").of_rank[0], 1);
  EXPECT_EQ(held("0F0,0I0,0F1,0W0,0I1,0W1\n").of_rank[0], 2) << "I lets nothing go";
  EXPECT_EQ(held("0F0,0I0,0W0,0F1,0I1,0W1\n").of_rank[0], 1);
}

TEST(HeldActivations, AreCountedByStage) {
  const auto most = held("0F0,0F1,1F0,1B0,1F1,1B1,0B0,0B1\n");
  EXPECT_EQ(most.of_rank, (std::vector<int64_t>{3}));
  EXPECT_EQ(most.of_stage, (std::vector<int64_t>{2, 1}));
}

/// A rank holds no more than its stages do at their worst, and no less than one of them.
RC_GTEST_PROP(HeldActivations, OfARankAndItsStagesAgree, ()) {
  const auto schedule = (*drawn_schedule()).make();
  const auto most = held_activations(schedule);
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    int64_t sum = 0, largest = 0;
    for (size_t stage = 0; stage < schedule.rank_of_stage.size(); ++stage) {
      if (schedule.rank_of_stage[stage] != static_cast<int64_t>(rank)) continue;
      sum += most.of_stage[stage];
      largest = std::max(largest, most.of_stage[stage]);
    }
    RC_ASSERT(most.of_rank[rank] <= sum && most.of_rank[rank] >= largest);
  }
}

}  // namespace
}  // namespace lockstep::pipeline

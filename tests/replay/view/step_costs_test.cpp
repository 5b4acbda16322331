// What a step costs, in closed form: times without what ran inside, bytes of all ranks, the longest first.
#include "replay/view/step_costs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/replay/view/sample_step.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::SampleStep;
constexpr auto kGather = CollectiveKind::kAllGather, kReduce = CollectiveKind::kAllReduce;

std::vector<std::string> rows_of(const StepCosts& costs) {
  std::vector<std::string> rows;
  for (const auto& row : costs.rows)
    rows.push_back(fmt::format("{}{}: {} ns, {} times, {} B", row.is_collective ? "* " : "", row.name, row.time,
                               row.times, row.bytes));
  return rows;
}

StepCosts costs_of_ranks(const std::vector<StepRecording>& ranks) { return costs_of(processes_of(ranks)); }

TEST(StepCosts, ComeTheLongestFirst) {
  const auto costs = costs_of_ranks({SampleStep()
                                         .op("add", 10, 15, Phase::kForward, 64)
                                         .op("mm", 20, 60, Phase::kForward, 1000)
                                         .op("add", 60, 70, Phase::kBackward, 32)
                                         .collective(kGather, "tp", 80, 100, 500)
                                         .collective(kGather, "dp", 100, 103, 7)
                                         .recording});
  EXPECT_EQ(rows_of(costs),
            (std::vector<std::string>{"mm: 40 ns, 1 times, 1000 B", "* all_gather on tp: 20 ns, 1 times, 500 B",
                                      "add: 15 ns, 2 times, 96 B", "* all_gather on dp: 3 ns, 1 times, 7 B"}));
  EXPECT_EQ(costs.length, 103U);
  EXPECT_EQ(costs.unknown, 103U - 5 - 40 - 10 - 20 - 3);
}

TEST(StepCosts, OfAnOpAreWithoutWhatRanInside) {
  const auto costs = costs_of_ranks({SampleStep()
                                         .op("outer", 0, 100)
                                         .op("inner", 10, 40)
                                         .op("innermost", 20, 30)
                                         .collective(kReduce, "tp", 50, 75, 8)
                                         .recording});
  EXPECT_EQ(rows_of(costs),
            (std::vector<std::string>{"outer: 45 ns, 1 times, 0 B", "* all_reduce on tp: 25 ns, 1 times, 8 B",
                                      "inner: 20 ns, 1 times, 0 B", "innermost: 10 ns, 1 times, 0 B"}));
  EXPECT_EQ(costs.unknown, 0U);
}

/// Of two collectives at once inside an op the time is taken off once; one that ends after the op, not at all.
TEST(StepCosts, TakeNoTimeOffTwice) {
  const auto costs = costs_of_ranks({SampleStep()
                                         .op("mm", 0, 100)
                                         .collective(kGather, "tp", 10, 50, 1)
                                         .collective(kReduce, "tp", 20, 60, 1)
                                         .collective(CollectiveKind::kAllToAll, "tp", 90, 130, 1)
                                         .recording});
  EXPECT_EQ(costs.rows[0].name, "mm");
  EXPECT_EQ(costs.rows[0].time, 50U);
  EXPECT_EQ(costs.length, 130U);
  EXPECT_EQ(costs.unknown, 0U);
}

TEST(StepCosts, OfASimulationCountAnOpOnceAndBytesOfAllRanks) {
  const auto rank = [](int number, uint64_t bytes) {
    return SampleStep(number, 2).op("mm", 0, 40, Phase::kForward, bytes).collective(kGather, "tp", 40, 50, 3).recording;
  };
  const auto costs = costs_of_ranks({rank(0, 100), rank(1, 60)});
  EXPECT_EQ(rows_of(costs),
            (std::vector<std::string>{"mm: 40 ns, 1 times, 160 B", "* all_gather on tp: 10 ns, 1 times, 6 B"}));
  EXPECT_EQ(costs.length, 50U);
}

TEST(StepCosts, OfProcessesAreAddedUpAndTheLongestIsNamed) {
  const auto costs = costs_of_ranks({SampleStep(0, 2).op("mm", 0, 40, Phase::kForward, 100).recording,
                                     SampleStep(1, 2).op("mm", 5, 95, Phase::kForward, 100).recording});
  EXPECT_EQ(rows_of(costs), (std::vector<std::string>{"mm: 130 ns, 2 times, 200 B"}));
  EXPECT_EQ(costs.rows[0].where, "rank 1");
  EXPECT_EQ(costs.rows[0].most, 90U);
  EXPECT_EQ(costs.length, 135U);
  EXPECT_EQ(costs.unknown, 5U);
}

TEST(StepCosts, OfNothingAreNone) {
  EXPECT_TRUE(costs_of_ranks({SampleStep().recording}).rows.empty());
  EXPECT_TRUE(costs_of({}).rows.empty());
}

}  // namespace
}  // namespace lockstep::replay

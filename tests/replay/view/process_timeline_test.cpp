// Which ranks were one process, and what it did when.
#include "replay/view/process_timeline.h"

#include <gtest/gtest.h>

#include "tests/replay/view/sample_step.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::SampleStep;

StepRecording of_rank(int rank, uint64_t shift, uint64_t bytes = 100) {
  const auto wait = static_cast<uint64_t>(rank);
  return SampleStep(rank, 4)
      .op("mm", 10 + shift, 50 + shift)
      .collective(CollectiveKind::kAllGather, "tp", 60 + shift - wait, 70 + shift + wait, bytes)
      .op("add", 80 + shift, 90 + shift)
      .recording;
}

TEST(Processes, AreOneWhereOpsRanAtTheSameMoments) {
  const std::vector ranks{of_rank(0, 0, 100), of_rank(1, 0, 250), of_rank(2, 0), of_rank(3, 0)};
  const auto processes = processes_of(ranks);
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes[0].name(), "ranks 0-3");
  EXPECT_TRUE(processes[0].is_simulation());
  EXPECT_EQ(processes[0].ops.size(), 2U) << "not those of each rank";
  ASSERT_EQ(processes[0].collectives.size(), 1U);
  EXPECT_EQ(processes[0].collectives[0].name, "all_gather on tp");
  EXPECT_EQ(processes[0].collectives[0].bytes, 100U + 250 + 100 + 100);
  EXPECT_EQ(processes[0].collectives[0].window.begin, 57U) << "of the first of the ranks";
  EXPECT_EQ(processes[0].collectives[0].window.end, 73U) << "of the last of the ranks";
  EXPECT_EQ(processes[0].end(), 90U);
}

TEST(Processes, AreAsManyAsClocks) {
  const std::vector ranks{of_rank(0, 0), of_rank(1, 3), of_rank(2, 0), of_rank(3, 3)};
  const auto processes = processes_of(ranks);
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(processes[0].name(), "ranks 0, 2");
  EXPECT_EQ(processes[1].name(), "ranks 1, 3");
  EXPECT_EQ(processes_of(std::vector{of_rank(7, 0)})[0].name(), "rank 7");
}

TEST(Processes, WithoutAnOpAreNotKnownToBeOne) {
  const std::vector ranks{SampleStep(0, 2).recording, SampleStep(1, 2).recording};
  EXPECT_EQ(processes_of(ranks).size(), 2U);
  EXPECT_EQ(processes_of(ranks)[0].end(), 0U);
}

TEST(Processes, DrawWhatRunsAtOnceInLanes) {
  const auto recording = SampleStep()
                             .op("outer", 0, 100)
                             .op("inner", 10, 40)
                             .op("innermost", 20, 30)
                             .op("second", 40, 60)
                             .op("after", 100, 120)
                             .recording;
  const std::vector ranks{recording};
  const auto processes = processes_of(ranks);
  std::vector<size_t> lanes;
  for (const auto& op : processes[0].ops) lanes.push_back(op.lane);
  EXPECT_EQ(lanes, (std::vector<size_t>{0, 1, 2, 1, 0}));
}

TEST(Processes, OfACraftedRecordingHaveNoNegativeTimes) {
  const std::vector ranks{SampleStep().op("mm", 50, 10).recording};
  EXPECT_EQ(processes_of(ranks)[0].ops[0].window.length(), 0U);
}

}  // namespace
}  // namespace lockstep::replay

#include "trainer/pipeline/kinds/schedule_kinds.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "trainer/pipeline/placement.h"
#include "trainer/pipeline/schedule_csv.h"

namespace lockstep::pipeline {
namespace {

using testing::message_of;

std::string refusal(const char* name, PipelineSize size) {
  return message_of<BadInput>([&] { make_schedule(name, size); });
}

TEST(ScheduleKinds, NamesAreThoseOfPyTorchInAnyCase) {
  for (const char* name : {"GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"})
    EXPECT_EQ(schedule_kind(name).name, name);
  EXPECT_EQ(schedule_kind("gpipe").name, "GPipe");
  EXPECT_EQ(schedule_kind("INTERLEAVED1f1b").name, "Interleaved1F1B");
  EXPECT_EQ(make_schedule("zbh1", {2, 1, 2}).name, "ZBH1");
}

TEST(ScheduleKinds, AnUnknownNameComesWithTheNearest) {
  EXPECT_EQ(refusal("zbvzerobuble", {2, 2, 4}),
            "zbvzerobuble is not a pipeline schedule. Did you mean ZBVZeroBubble? The schedules are GPipe, 1F1B, "
            "Interleaved1F1B, ZBH1, InterleavedZeroBubble, ZBVZeroBubble, DualPipeV.");
  EXPECT_EQ(refusal("", {2, 2, 4}),
            " is not a pipeline schedule. The schedules are GPipe, 1F1B, Interleaved1F1B, ZBH1, InterleavedZeroBubble, "
            "ZBVZeroBubble, DualPipeV.");
}

TEST(ScheduleKinds, SizesThatAScheduleDoesNotHaveAreRefused) {
  EXPECT_EQ(refusal("GPipe", {0, 1, 4}), "GPipe: 0 ranks, must be from 1 to 4096.");
  EXPECT_EQ(refusal("GPipe", {2, 1, 0}), "GPipe: 0 microbatches, must be from 1 to 65536.");
  EXPECT_EQ(refusal("Interleaved1F1B", {2, -1, 4}), "Interleaved1F1B: -1 stages per rank, must be from 1 to 65536.");
  EXPECT_EQ(refusal("1F1B", {2, 2, 4}),
            "1F1B has 1 stage per rank, not 2. Interleaved1F1B and InterleavedZeroBubble have any number.");
  EXPECT_EQ(refusal("ZBVZeroBubble", {2, 3, 4}),
            "ZBVZeroBubble has 2 stages per rank, not 3. They stand at equal distances from both ends.");
  EXPECT_EQ(refusal("DualPipeV", {3, 2, 5}),
            "DualPipeV needs as many microbatches as stages, 6, to keep both directions busy; there are 5.");
  EXPECT_EQ(
      refusal("Interleaved1F1B", {3, 2, 7}),
      "7 microbatches do not divide into 2 rounds, in each of which the 3 ranks go through all their stages. Choose 6 "
      "or 9 microbatches.");
  EXPECT_EQ(refusal("Interleaved1F1B", {4096, 17, 1}),
            "Interleaved1F1B: 4096 ranks with 17 stages each have 69632, must be at most 65536.");
  EXPECT_EQ(refusal("GPipe", {4096, 1, 65536}),
            "GPipe: 4096 stages with 65536 microbatches are more actions than a schedule holds (16777216 at most).");
}

/// As PyTorch has them; tests/python/pipeline_schedules_test.py compares hundreds of sizes.
TEST(ScheduleKinds, ListsAreThoseOfPyTorch) {
  EXPECT_EQ(to_csv(make_schedule("InterleavedZeroBubble", {2, 2, 3})),
            "0F0,0F1,0F2,2F0,2F1,2I0,2W0,2F2,2I1,2W1,2I2,2W2,0I0,0W0,0I1,0W1,0I2,0W2\n"
            "1F0,1F1,1F2,3F0,3I0,3F1,3I1,3W0,3F2,3I2,3W1,1I0,3W2,1I1,1W0,1I2,1W1,1W2\n");
  EXPECT_EQ(to_csv(make_schedule("ZBVZeroBubble", {3, 2, 2})),
            "0F0,0F1,5F0,5I0,5W0,5F1,5I1,5W1,0I0,0W0,0I1,0W1\n"
            "1F0,1F1,4F0,4F1,4I0,4W0,4I1,4W1,1I0,1W0,1I1,1W1\n"
            "2F0,3F0,2F1,3F1,3I0,3W0,2I0,2W0,3I1,3W1,2I1,2W1\n");
  EXPECT_EQ(
      to_csv(make_schedule("DualPipeV", {2, 2, 4})),
      "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,"
      "0I3,0W3\n"
      "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,"
      "1W3\n");
}

TEST(ScheduleKinds, WithOneStagePerRankRoundsMakeNoDifference) {
  auto one = make_schedule("InterleavedZeroBubble", {3, 1, 7}), other = make_schedule("ZBH1", {3, 1, 7});
  other.name = one.name;
  EXPECT_EQ(one, other);
}

TEST(Placement, StagesLieInLoopsOrInAV) {
  EXPECT_EQ(loop_placement(3, 2), (std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(v_placement(3), (std::vector<int64_t>{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(stages_of(loop_placement(3, 2), 1), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(stages_of(v_placement(3), 1), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(stages_of(v_placement(3), 0), (std::vector<int64_t>{0, 5}));
}

}  // namespace
}  // namespace lockstep::pipeline

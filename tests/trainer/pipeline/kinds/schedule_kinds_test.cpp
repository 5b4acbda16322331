#include "trainer/pipeline/kinds/schedule_kinds.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "trainer/pipeline/placement.h"

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
  EXPECT_EQ(refusal("GPipe", {0, 1, 4}), "GPipe: 0 ranks, must be from 1 to 65536.");
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
  EXPECT_EQ(
      refusal("Interleaved1F1B", {65536, 65536, 65536}),
      "Interleaved1F1B: 4294967296 stages with 65536 microbatches are more actions than a schedule holds (16777216 at "
      "most).");
  EXPECT_EQ(refusal("GPipe", {65536, 1, 65536}),
            "GPipe: 65536 stages with 65536 microbatches are more actions than a schedule holds (16777216 at most).");
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

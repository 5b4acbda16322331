#include "trainer/pipeline/check.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "trainer/pipeline/execution_order.h"
#include "trainer/pipeline/kinds/schedule_kinds.h"
#include "trainer/pipeline/schedule_csv.h"
#include "trainer/pipeline/timeline.h"

/// One planted fault for each line of what check() looks for, and what a user reads.
namespace lockstep::pipeline {
namespace {

using testing::message_of;

std::string refusal(const Schedule& schedule) {
  return message_of<BadInput>([&] { check(schedule); });
}

/// Of "0F0,0B0\n1F0,1B0\n".
std::string refusal_of_csv(const std::string& text) { return refusal(parse_schedule_csv(text, "a.csv").schedule); }

/// 1F1B of two ranks and three microbatches with a fault:
///
///   rank 0  0F0 0F1 0B0 0F2 0B1 0B2
///   rank 1  1F0 1B0 1F1 1B1 1F2 1B2
std::string refusal_with(const std::function<void(std::vector<std::vector<Action>>&)>& fault) {
  auto schedule = make_schedule("1F1B", {2, 1, 3});
  fault(schedule.ranks);
  return refusal(schedule);
}

constexpr auto kF = ActionKind::kForward;

TEST(PipelineCheck, AMissingActionIsNamed) {
  EXPECT_EQ(refusal_with([](auto& ranks) { ranks[0].erase(ranks[0].begin() + 3); }),
            "1F1B: 0F2 is missing; it belongs to rank 0.");
  EXPECT_EQ(refusal_with([](auto& ranks) { ranks[1].pop_back(); }),
            "1F1B: 1B2 is missing; it belongs to rank 1 (or its two parts, 1I2 and 1W2).");
  EXPECT_EQ(refusal_of_csv("0F0,0I0\n"), "a.csv: 0W0 is missing; it belongs to rank 0.");
  EXPECT_EQ(refusal_of_csv("0F0,0W0\n"), "a.csv: 0I0 is missing; it belongs to rank 0.");
}

TEST(PipelineCheck, AnActionThatIsThereTwiceIsNamedWithBothPlaces) {
  EXPECT_EQ(refusal_with([](auto& ranks) { ranks[0].push_back(ranks[0][2]); }),
            "1F1B: 0B0 is done twice: rank 0, action 2, and rank 0, action 6.");
  EXPECT_EQ(refusal_of_csv("0F0,0I0,0B0\n"),
            "a.csv: 0B0 holds what 0I0 does again: rank 0, action 2, and rank 0, action 1.");
  EXPECT_EQ(refusal_of_csv("0F0,0B0,0W0\n"),
            "a.csv: 0B0 holds what 0W0 does again: rank 0, action 1, and rank 0, action 2.");
}

TEST(PipelineCheck, AnActionOnAnotherRankIsNamed) {
  EXPECT_EQ(refusal_with([](auto& ranks) {
              ranks[1].push_back(ranks[0].back());
              ranks[0].pop_back();
            }),
            "1F1B: rank 1, action 6: 0B2: stage 0 is on rank 0.");
}

TEST(PipelineCheck, AStageThatNobodyHoldsIsNamed) {
  EXPECT_EQ(refusal_of_csv("0F0,0B0\n2F0,2B0\n"),
            "a.csv: stage 1 is on no rank: every stage has to be on one of 2 ranks.");
  EXPECT_EQ(refusal_with([](auto& ranks) {
              ranks[1].push_back({kF, 2, 0});
            }),
            "1F1B: rank 1, action 6: 2F0: there is no stage 2; there are 2.");
  EXPECT_EQ(refusal_with([](auto& ranks) {
              ranks[1].push_back({kF, 1, 3});
            }),
            "1F1B: rank 1, action 6: 1F3: there is no microbatch 3; there are 3.");
  EXPECT_EQ(refusal_with([](auto& ranks) {
              ranks[1].push_back({kF, -1, 0});
            }),
            "1F1B: rank 1, action 6: -1F0: there is no stage -1; there are 2.");
}

TEST(PipelineCheck, ARankWithoutActionsIsNamed) {
  EXPECT_EQ(refusal_of_csv("0F0,0B0\n\n1F0,1B0\n"), "a.csv: rank 1 has nothing to do.");
  EXPECT_EQ(refusal({"nothing", 1, {}, {}}),
            "nothing: has 0 ranks, 0 stages and 1 microbatches; one of each is the least.");
}

TEST(PipelineCheck, WhatARankHasInTheWrongOrderIsNamed) {
  EXPECT_EQ(refusal_of_csv("0B0,0F0\n"),
            "a.csv: never ends: rank 0 waits at 0B0 for 0F0, which it has behind that. Move one of these actions.");
  EXPECT_EQ(refusal_of_csv("0F0,0W0,0I0\n"),
            "a.csv: never ends: rank 0 waits at 0W0 for 0I0, which it has behind that. Move one of these actions.");
}

TEST(PipelineCheck, RanksThatWaitForEachOtherAreNamedWithWhatTheyWaitFor) {
  EXPECT_EQ(refusal_with([](auto& ranks) { std::swap(ranks[0][1], ranks[0][4]); }),
            "1F1B: never ends: rank 0 waits at 0B1 for 0F1, which it has behind that. Move one of these actions.");
  // Rank 1 wants both forwards before a backward, rank 0 a backward between its forwards.
  EXPECT_EQ(refusal_of_csv("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"),
            "a.csv: never ends: rank 0 waits at 0B0 for 1B0, which rank 1 has behind 1F1; rank 1 waits at 1F1 for 0F1, "
            "which rank 0 has behind 0B0. Move one of these actions.");
}

/// Ranks that only wait for those are not named.
TEST(PipelineCheck, TheCycleIsWithoutWhatLeadsToIt) {
  EXPECT_EQ(refusal_of_csv("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2F0,2B0,2F1,2B1\n3F0,3F1,3B0,3B1\n"),
            "a.csv: never ends: rank 2 waits at 2B0 for 3B0, which rank 3 has behind 3F1; rank 3 waits at 3F1 for 2F1, "
            "which rank 2 has behind 2B0. Move one of these actions.");
}

TEST(PipelineCheck, PairsBeginTogether) {
  EXPECT_EQ(refusal_of_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"), "no such error");
  EXPECT_EQ(
      refusal_of_csv("(0F0;0B0)OVERLAP_F_B\n"),
      "a.csv: never ends: rank 0 waits at 0F0 with 0B0 for 0F0, which begins with it. Move one of these actions.");
  // One by one this would do: rank 1 can begin with 1F1 as soon as 0F1 has ended.
  EXPECT_EQ(
      refusal_of_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1F1,1B0,1B1\n"),
      "a.csv: never ends: rank 0 waits at 0F1 with 0B0 for 1B0, which rank 1 has behind 1F1; rank 1 waits at 1F1 for "
      "0F1 of rank 0. Move one of these actions.");
  EXPECT_EQ(refusal_of_csv("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"), "no such error");
  EXPECT_EQ(refusal_with([](auto& ranks) { ranks[1].back().overlaps_next = true; }),
            "1F1B: rank 1, action 5: 1B2: begins together with the next action; a forward (F) and then a whole "
            "backward (B) were "
            "expected.");
  EXPECT_EQ(refusal_with([](auto& ranks) { ranks[0][0].overlaps_next = ranks[0][1].overlaps_next = true; }),
            "1F1B: rank 0, action 0: 0F0: begins together with the next action; a forward (F) and then a whole "
            "backward (B) were "
            "expected.");
}

TEST(PipelineCheck, LargeNumbersInASmallFileTakeNoTime) {
  EXPECT_EQ(refusal_of_csv("0F65535,0B65535\n"), "a.csv: 0F0 is missing; it belongs to rank 0.");
  EXPECT_EQ(refusal_of_csv("65535F0,65535B0\n"),
            "a.csv: stage 0 is on no rank: every stage has to be on one of 1 ranks.");
}

TEST(PipelineCheck, ASimulationNeedsAnEnd) {
  const auto schedule = parse_schedule_csv("0F0,0W0,0I0\n", "a.csv").schedule;
  EXPECT_THROW(simulate(schedule), BadInput);
}

TEST(PipelineCheck, OneProcessHasAnOrderForAll) {
  const auto schedule = make_schedule("1F1B", {2, 1, 2});
  std::string text;
  for (const auto& place : execution_order(schedule)) text += text_of(action_at(schedule, place)) + " ";
  EXPECT_EQ(text, "0F0 0F1 1F0 1B0 1F1 1B1 0B0 0B1 ");
}

}  // namespace
}  // namespace lockstep::pipeline

#include "trainer/pipeline/schedule_csv.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/trainer/pipeline/drawn_schedule.h"

namespace lockstep::pipeline {
namespace {

using testing::message_of;

std::string refusal(const std::string& text) {
  return message_of<BadInput>([&] { parse_schedule_csv(text, "a.csv"); });
}

TEST(PipelineCsv, HasALineForEachRank) {
  EXPECT_EQ(to_csv(make_schedule("ZBH1", {2, 1, 2})), "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n");
  EXPECT_EQ(to_csv(make_schedule("DualPipeV", {1, 2, 3})),
            "0F0,1F0,0F1,1B0,(1F1;0B0)OVERLAP_F_B,(0F2;1B1)OVERLAP_F_B,(1F2;0B1)OVERLAP_F_B,1B2,0I2,0W2\n");
}

RC_GTEST_PROP(PipelineCsv, ReadsWhatItWrites, ()) {
  const auto drawn = *drawn_schedule();
  auto schedule = drawn.make();
  const auto file = parse_schedule_csv(to_csv(schedule), schedule.name);
  RC_ASSERT(file.schedule == schedule);
  RC_ASSERT(file.left_out == 0);
}

TEST(PipelineCsv, BlanksQuotesEmptyCellsAndEndsOfLinesDoNotMatter) {
  const auto plain = parse_schedule_csv("0F0,0B0\n1F0,1B0\n", "a").schedule;
  for (const char* text :
       {"0F0,0B0\n1F0,1B0", "0F0,0B0\r\n1F0,1B0\r\n", "0F0,,,0B0\n,1F0,1B0,,\n\n\n", " 0F0 ,\t0B0\n\"1F0\",\"1B0\"\n"})
    EXPECT_EQ(parse_schedule_csv(text, "a").schedule, plain) << text;
  EXPECT_EQ(parse_schedule_csv("0F0,0F1,( 0F2 ; 0B0 )OVERLAP_F_B\n", "a").schedule.ranks[0][2],
            (Action{ActionKind::kForward, 0, 2, true}));
}

TEST(PipelineCsv, CommunicationIsLeftOutAndCounted) {
  const auto file = parse_schedule_csv(
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0\n", "a");
  EXPECT_EQ(file.schedule, parse_schedule_csv("0F0,0B0\n1F0,1B0\n", "a").schedule);
  EXPECT_EQ(file.left_out, 8);
}

TEST(PipelineCsv, WhatCannotBeReadIsNamedWithLineAndCell) {
  EXPECT_EQ(refusal(""), "a.csv: is empty. A line of actions for each rank was expected.");
  EXPECT_EQ(refusal("\r\n \n"), "a.csv: is empty. A line of actions for each rank was expected.");
  EXPECT_EQ(refusal("0F0,0B0\n1F0,,1X0\n"),
            "a.csv:2, cell 3: \"1X0\" is no action. Stage, F, B, I or W, and microbatch were expected, such as 0F1.");
  for (const char* cell : {"0SEND_F", "SEND_F0", "0SEND_FX", "0UNSHARD1", "0SEND_X0", "0UNSHARDED"})
    EXPECT_EQ(refusal(cell), "a.csv:1, cell 1: \"" + std::string(cell) +
                                 "\" is no action. Stage, F, B, I or W, and microbatch were expected, such as 0F1.");
  for (const char* cell : {"(0F1;0B0)", "(0F1)OVERLAP_F_B", "(0F1;0B0OVERLAP_F_B", "()OVERLAP_F_B", "(0F1;0B0)OVERLAP",
                           "(0F1)(0B0;)OVERLAP_F_B"})
    EXPECT_EQ(refusal(cell), "a.csv:1, cell 1: \"" + std::string(cell) +
                                 "\" is no pair. Two actions and OVERLAP_F_B were expected, such as "
                                 "(0F5;7B2)OVERLAP_F_B.");
  EXPECT_EQ(
      refusal("(0B1;0F0)OVERLAP_F_B"),
      "a.csv:1, cell 1: \"(0B1;0F0)OVERLAP_F_B\" pairs 0B1 and 0F0; a forward (F) and then a whole backward (B) were "
      "expected.");
  EXPECT_EQ(
      refusal("(0B1;0B0)OVERLAP_F_B"),
      "a.csv:1, cell 1: \"(0B1;0B0)OVERLAP_F_B\" pairs 0B1 and 0B0; a forward (F) and then a whole backward (B) were "
      "expected.");
  EXPECT_EQ(refusal("0F0\n1F0,0B0\n"),
            "a.csv:2: 0B0 is on rank 1, but stage 0 is on rank 0 (line 1). One rank has to hold it.");
}

/// Whatever the bytes, there is a schedule or one clear error.
RC_GTEST_PROP(PipelineCsv, AnyTextIsReadOrRefused, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123FBIWSEND_RV,;()OLAP\n\r\" \xff")));
  try {
    RC_ASSERT(!parse_schedule_csv(text, "a.csv").schedule.ranks.empty());
  } catch (const BadInput& error) {
    RC_ASSERT(std::string(error.what()).starts_with("a.csv:"));
  }
}

}  // namespace
}  // namespace lockstep::pipeline

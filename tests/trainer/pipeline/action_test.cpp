#include "trainer/pipeline/action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace lockstep::pipeline {
namespace {

using testing::message_of;

TEST(PipelineAction, IsWrittenAsPyTorchWritesIt) {
  EXPECT_EQ(text_of({ActionKind::kForward, 0, 1}), "0F1");
  EXPECT_EQ(text_of({ActionKind::kBackward, 3, 2}), "3B2");
  EXPECT_EQ(text_of({ActionKind::kBackwardInput, 1, 0}), "1I0");
  EXPECT_EQ(text_of({ActionKind::kBackwardWeight, 12, 15}), "12W15");
}

RC_GTEST_PROP(PipelineAction, ReadsWhatItWrites, ()) {
  const Action action{*rc::gen::element(ActionKind::kForward, ActionKind::kBackward, ActionKind::kBackwardInput,
                                        ActionKind::kBackwardWeight),
                      *rc::gen::inRange<int64_t>(0, kMostStages), *rc::gen::inRange<int64_t>(0, kMostMicrobatches)};
  RC_ASSERT(parse_action(text_of(action), "here") == action);
}

TEST(PipelineAction, AnyOtherTextIsRefusedWithItsPlace) {
  for (const char* text : {"", "F", "F1", "0F", "0", "0X1", "0f1", "0F1 ", " 0F1", "-1F0", "0F-1", "0F1F", "0SEND_F1",
                           "99999999999999999999F0", "0F99999999999999999999"})
    EXPECT_EQ(message_of<BadInput>([&] { parse_action(text, "a.csv:2, cell 3"); }),
              "a.csv:2, cell 3: \"" + std::string(text) +
                  "\" is no action. Stage, F, B, I or W, and microbatch were expected, such as 0F1.");
  EXPECT_EQ(message_of<BadInput>([] { parse_action("65536F0", "a.csv:1, cell 1"); }),
            "a.csv:1, cell 1: 65536F0 has too large a number; stages go to 65535, microbatches to 65535.");
  EXPECT_THROW(parse_action("0F65536", "here"), BadInput);
}

}  // namespace
}  // namespace lockstep::pipeline

// The numerics version of a recording, and what is taken for none.
#include "replay/format/recorded_numerics.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/numerics_version.h"
#include "replay/format/validate.h"
#include "tests/support/recorded_steps.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::message_of;

std::string refusal_of(std::vector<std::pair<std::string, std::string>> machine) {
  StepRecording recording;
  recording.machine = std::move(machine);
  return message_of<BadInput>([&] { validate(recording); });
}

TEST(RecordedNumerics, IsAFactOfTheMachine) {
  StepRecording recording;
  EXPECT_EQ(numerics_version_of(recording), std::nullopt) << "older recordings say nothing";
  recording.machine = {{"build_id", "3"}, {"numerics_version", "12"}};
  EXPECT_EQ(numerics_version_of(recording), 12);
}

TEST(RecordedNumerics, IsADecimalNumber) {
  EXPECT_EQ(parse_numerics_version("0"), 0);
  EXPECT_EQ(parse_numerics_version("999999"), kMostNumericsVersion);
  EXPECT_EQ(parse_numerics_version(std::string_view("123").substr(0, 2)), 12) << "what is behind it is none of it";
  for (const char* text : {"", "-1", "+1", "01", "1 ", " 1", "1.0", "0x1", "one", "1000000", "99999999999999999999"})
    EXPECT_EQ(parse_numerics_version(text), std::nullopt) << text;
}

TEST(RecordedNumerics, WhatIsNoneIsRefused) {
  EXPECT_EQ(refusal_of({}), "no such error");
  EXPECT_EQ(refusal_of({{"numerics_version", "1"}}), "no such error");
  EXPECT_EQ(refusal_of({{"numerics_version", "01"}}),
            "/machine has numerics_version = '01', not a number from 0 to 999999");
  EXPECT_EQ(refusal_of({{"numerics_version", "1"}, {"numerics_version", "1"}}), "/machine has numerics_version twice");
}

}  // namespace
}  // namespace lockstep::replay

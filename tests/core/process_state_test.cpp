#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <csignal>
#include <cstdlib>
#include <string>

#include "core/elementary/floating_environment.h"
#include "core/elementary/instruction_set.h"
#include "core/error.h"
#include "core/interruption.h"

#if defined(__x86_64__)
#  include <xmmintrin.h>
#endif

namespace lockstep {
namespace {

using testing::HasSubstr;

std::string floating_environment_error() {
  try {
    check_floating_environment();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "none";
}

TEST(FloatingEnvironment, TheDefaultIsFine) { EXPECT_EQ(floating_environment_error(), "none"); }

#if defined(__x86_64__)
TEST(FloatingEnvironment, FlushToZeroAndDenormalsAreZeroAreNamed) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8000u);
  const auto flush = floating_environment_error();
  _mm_setcsr(before | 0x0040u);
  const auto denormals = floating_environment_error();
  _mm_setcsr(before);
  EXPECT_THAT(flush, HasSubstr(" flush-to-zero"));
  EXPECT_THAT(denormals, HasSubstr(" denormals-are-zero"));
}
#endif

TEST(FloatingEnvironment, AnotherRoundingModeIsNamed) {
  std::fesetround(FE_UPWARD);
  const auto message = floating_environment_error();
  std::fesetround(FE_TONEAREST);
  EXPECT_THAT(message, HasSubstr("rounding mode"));
}

TEST(Interruption, SignalsSetAFlagAndTheFirstIsRemembered) {
  const InterruptionHandler handler;
  EXPECT_FALSE(interruption_requested());
  EXPECT_STREQ(interruption_signal(), "");
  std::raise(SIGTERM);
  std::raise(SIGINT);
  std::raise(SIGINT);
  EXPECT_TRUE(interruption_requested());
  EXPECT_STREQ(interruption_signal(), "SIGTERM");
}

TEST(Interruption, HandlersAreRestored) {
  { const InterruptionHandler handler; }
  EXPECT_FALSE(interruption_requested());
  EXPECT_EXIT(std::raise(SIGINT), testing::KilledBySignal(SIGINT), "");
}

TEST(InstructionSet, TheBaselineIsAlwaysThereAndTheBestIsLast) {
  const auto& sets = available_instruction_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.front(), InstructionSet::kBaseline);
  EXPECT_EQ(sets.back(), best_instruction_set());
}

}  // namespace
}  // namespace lockstep

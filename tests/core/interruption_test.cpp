#include "core/interruption.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep {
namespace {

using ::testing::ExitedWithCode;

constexpr int kFirst = 40, kAgain = 80, kWentOn = 3;

void leave_with_code(int number, bool again) { ::_exit((again ? kAgain : kFirst) + number); }

TEST(LeavingOnInterruption, TheFirstSignalLeavesWhereNothingWouldBeSaved) {
  EXPECT_EXIT((leave_on_interruption(leave_with_code), std::raise(SIGTERM)), ExitedWithCode(kFirst + SIGTERM), "");
  EXPECT_EXIT((leave_on_interruption(leave_with_code), std::raise(SIGINT)), ExitedWithCode(kFirst + SIGINT), "");
}

TEST(LeavingOnInterruption, AHandlerRemembersAndItsEndForgets) {
  EXPECT_EXIT(
      {
        leave_on_interruption(leave_with_code);
        {
          const InterruptionHandler handler;
          std::raise(SIGTERM);
          if (!interruption_requested()) ::_exit(1);
        }
        if (interruption_requested()) ::_exit(2);
        std::raise(SIGINT);
      },
      ExitedWithCode(kFirst + SIGINT), "");
}

TEST(LeavingOnInterruption, SoonTheSecondSignalIsTheSameRequest) {
  EXPECT_EXIT(
      {
        leave_on_interruption(leave_with_code);
        const InterruptionHandler handler;
        for (const int number : {SIGTERM, SIGTERM, SIGINT}) std::raise(number);
        ::_exit(kWentOn);
      },
      ExitedWithCode(kWentOn), "");
}

TEST(LeavingOnInterruption, ASecondLaterItLeaves) {
  EXPECT_EXIT(
      {
        leave_on_interruption(leave_with_code);
        const InterruptionHandler handler;
        std::raise(SIGTERM);
        ::usleep(1'050'000);
        std::raise(SIGINT);
        ::_exit(kWentOn);
      },
      ExitedWithCode(kAgain + SIGINT), "");
}

TEST(InterruptionHandler, AnInnerOneForgetsNothing) {
  const InterruptionHandler outer;
  {
    const InterruptionHandler inner;
    std::raise(SIGTERM);
  }
  EXPECT_TRUE(interruption_requested());
  EXPECT_STREQ(interruption_signal(), "SIGTERM");
}

TEST(InterruptionsBlocked, SignalsWaitForWhoSaysWhatTheyDo) {
  EXPECT_EXIT(
      {
        new InterruptionsBlocked;  // lives on, as in a process that becomes another program
        std::raise(SIGTERM);
        leave_on_interruption(leave_with_code);
        ::_exit(kWentOn);
      },
      ExitedWithCode(kFirst + SIGTERM), "");
}

TEST(InterruptionsBlocked, TheEndOfItLetsThemThrough) {
  const InterruptionHandler handler;
  {
    const InterruptionsBlocked blocked;
    std::raise(SIGINT);
    EXPECT_FALSE(interruption_requested());
  }
  EXPECT_TRUE(interruption_requested());
}

}  // namespace
}  // namespace lockstep

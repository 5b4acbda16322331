// Places of lost ranks that are used again.
#include "tools/lockstep/launch/slots.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::tool {
namespace {

using Seconds = Slots::Seconds;
constexpr Slots::Time kStart{};

Slots::Time at(int seconds) { return kStart + std::chrono::seconds(seconds); }

TEST(Slots, AreThereAgainAfterAWhile) {
  Slots slots(4, Seconds(10));
  EXPECT_EQ(slots.free(at(0)), 4);
  EXPECT_FALSE(slots.are_coming());
  slots.lose(1, at(1));
  slots.lose(2, at(5));
  EXPECT_EQ(slots.free(at(10)), 1);
  EXPECT_TRUE(slots.are_coming());
  EXPECT_EQ(slots.free(at(11)), 2);
  EXPECT_EQ(slots.free(at(15)), 4);
  EXPECT_FALSE(slots.are_coming());
}

TEST(Slots, AtOnceOrNever) {
  Slots at_once(2, Seconds(0)), never(2, Seconds(INFINITY));
  at_once.lose(2, at(1));
  never.lose(2, at(1));
  EXPECT_EQ(at_once.free(at(1)), 2);
  EXPECT_EQ(never.free(at(1'000'000)), 0);
  EXPECT_FALSE(never.are_coming());
}

}  // namespace
}  // namespace lockstep::tool

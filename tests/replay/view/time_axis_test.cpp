// Times as people read them: where the ticks of a window are, and what stands beside them.
#include "replay/view/time_axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace lockstep::replay {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> labels_of(TimeWindow window, size_t most) {
  std::vector<std::string> labels;
  for (const auto& tick : ticks_of(window, most)) labels.push_back(tick.label);
  return labels;
}

TEST(TimeText, HasThreeDigits) {
  EXPECT_EQ(time_text(0), "0");
  EXPECT_EQ(time_text(999), "999 ns");
  EXPECT_EQ(time_text(1'000), "1.00 us");
  EXPECT_EQ(time_text(9'994), "9.99 us");
  EXPECT_EQ(time_text(9'996), "10.0 us");
  EXPECT_EQ(time_text(99'960), "100 us");
  EXPECT_EQ(time_text(999'499), "999 us");
  EXPECT_EQ(time_text(999'500), "1.00 ms");
  EXPECT_EQ(time_text(12'540'000), "12.5 ms");
  EXPECT_EQ(time_text(1'200'000'000), "1.20 s");
  EXPECT_EQ(time_text(3'600'000'000'000), "3600 s");
}

TEST(RoundPart, IsTheSmallestThatFits) {
  EXPECT_EQ(round_part(413'229'416, 10), 50'000'000U);
  EXPECT_EQ(round_part(100, 10), 10U);
  EXPECT_EQ(round_part(109, 10), 10U) << "10 whole parts, and some";
  EXPECT_EQ(round_part(110, 10), 20U);
  EXPECT_EQ(round_part(499, 10), 50U);
  EXPECT_EQ(round_part(0, 10), 1U);
  EXPECT_EQ(round_part(7, 1), 5U);
  EXPECT_GT(round_part(std::numeric_limits<uint64_t>::max(), 1), 0U);
}

TEST(RoundPart, IsReadAsItIs) {
  EXPECT_EQ(part_text(1), "1 ns");
  EXPECT_EQ(part_text(500), "500 ns");
  EXPECT_EQ(part_text(20'000'000), "20 ms");
  EXPECT_EQ(part_text(5'000'000'000), "5 s");
}

TEST(Ticks, AreRoundTimes) {
  EXPECT_THAT(labels_of({0, 413'229'416}, 5), ElementsAre("0", "100 ms", "200 ms", "300 ms", "400 ms"));
  EXPECT_THAT(labels_of({119'835'526, 351'500'466}, 5), ElementsAre("150 ms", "200 ms", "250 ms", "300 ms", "350 ms"));
  const auto ticks = ticks_of({119'835'526, 351'500'466}, 5);
  EXPECT_EQ(ticks.front().at, 150'000'000U);
  EXPECT_EQ(ticks.back().at, 350'000'000U);
}

TEST(Ticks, HaveTheUnitOfTheWindow) {
  EXPECT_THAT(labels_of({0, 1'000'000'000}, 5), ElementsAre("0", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1.0 s"));
  EXPECT_THAT(labels_of({0, 12'000'000'000}, 3), ElementsAre("0", "5 s", "10 s"));
  EXPECT_THAT(labels_of({357'650'001, 357'660'000}, 2), ElementsAre("357,655 us", "357,660 us"));
  EXPECT_THAT(labels_of({1'000, 1'300}, 3), ElementsAre("1,000 ns", "1,100 ns", "1,200 ns", "1,300 ns"));
  EXPECT_THAT(labels_of({1'000'000, 3'500'000}, 5),
              ElementsAre("1.0 ms", "1.5 ms", "2.0 ms", "2.5 ms", "3.0 ms", "3.5 ms"));
}

TEST(Ticks, OfNothingAreThatMoment) { EXPECT_THAT(labels_of({70, 70}, 5), ElementsAre("70 ns")); }

TEST(Ticks, AreNeverMoreThanAskedFor) {
  for (uint64_t length = 1; length < 5'000; length += 7)
    for (const size_t most : {1U, 3U, 10U})
      EXPECT_LE(ticks_of({length / 3, length / 3 + length}, most).size(), most + 1);
}

}  // namespace
}  // namespace lockstep::replay

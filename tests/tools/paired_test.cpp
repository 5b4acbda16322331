#include "tools/bench/paired.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lockstep::bench {
namespace {

TEST(Paired, MedianOfOddAndEvenCounts) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Paired, TheUpperBoundIsTheOrderStatisticOfTheSignTest) {
  std::vector<double> values;
  for (int i = 1; i <= 30; ++i) values.push_back(i);
  EXPECT_DOUBLE_EQ(median_upper_bound(values), 20);  // P(Binomial(30, 1/2) <= 19) = 0.9506, <= 18: 0.8998
  EXPECT_DOUBLE_EQ(median_upper_bound({5, 1, 4, 2, 3}), 5);
  EXPECT_GT(median_upper_bound({1, 2, 3, 4}), 1e300);  // four pairs cannot show anything with 95 % confidence
}

TEST(Paired, ARatioIsSeen) {
  const auto sleep = [](int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); };
  const auto timing = time_in_pairs([&] { sleep(3000); }, [&] { sleep(1000); }, {.pairs = 7, .seconds = 1e-3});
  EXPECT_GT(timing.ratio, 1.5);
  EXPECT_GE(timing.upper, timing.ratio);
  EXPECT_GT(timing.ours, timing.peer);
}

TEST(Paired, ABudgetEndsAfterFivePairs) {
  int calls = 0;
  const auto count = [&] { ++calls; };
  time_in_pairs(count, count, {.pairs = 31, .seconds = 0, .budget = 0});
  EXPECT_EQ(calls, 2 * (1 + 5)) << "one call finds the number of repetitions";
}

}  // namespace
}  // namespace lockstep::bench

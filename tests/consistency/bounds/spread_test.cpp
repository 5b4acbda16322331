#include "consistency/bounds/spread.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

/// Of two elements the sum of squares is exponential, and the bound x exp(1 - x) on either side has a closed form to
/// put the ends into: 2^-40 on both.
TEST(Spread, OfTwoElementsIsThatOfTheExponential) {
  double above = 40;
  for (int i = 0; i < 100; ++i) above = 1 + 40 * std::log(2.0) + std::log(above);
  double below = 1e-13;
  for (int i = 0; i < 100; ++i) below = 0x1p-40 * std::exp(below - 1);
  EXPECT_NEAR(largest_ratio_of_lengths(2) / std::sqrt(above / below), 1, 1e-9);
}

TEST(Spread, IsWhatTheHeaderSays) {
  EXPECT_NEAR(largest_ratio_of_lengths(1) / 1.4e13, 1, 0.05);
  EXPECT_NEAR(largest_ratio_of_lengths(64), 4, 0.05);
  EXPECT_NEAR(largest_ratio_of_lengths(100000), 1.03, 0.005);
  for (int64_t n = 1; n < 1 << 20; n *= 2) EXPECT_GT(largest_ratio_of_lengths(n), largest_ratio_of_lengths(2 * n));
  EXPECT_EQ(largest_ratio_of_lengths(0), largest_ratio_of_lengths(1));
}

/// 2^-39 is not to be met, and a thousandth of the way is.
TEST(Spread, ChanceStaysBelowIt) {
  for (const int64_t n : {1, 3, 64, 1000}) {
    double largest = 0;
    for (int trial = 0; trial < 500; ++trial) {
      const auto first = at::randn({n}, at::kDouble).norm().item<double>();
      largest = std::max(largest, first / at::randn({n}, at::kDouble).norm().item<double>());
    }
    EXPECT_LT(largest, largest_ratio_of_lengths(n)) << n;
    EXPECT_GT(largest, 1) << n;
  }
}

}  // namespace
}  // namespace lockstep

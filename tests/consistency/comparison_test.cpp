#include "consistency/comparison.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep {
namespace {

StepRecord record(double loss, double norm, const at::Tensor& gradient, const at::Tensor& parameter) {
  return {1, 7, loss, norm, {{"w", gradient}}, {{"w", parameter}}, {}, {}};
}

StepRecord plain() { return record(2, 3, at::tensor({1.0, -4.0}), at::tensor({1.0, 2.0, 3.0, 8.0}).view({2, 2})); }

TEST(Comparison, AgreesWithItself) {
  const auto comparison = compare(plain(), plain(), 0);
  EXPECT_TRUE(comparison.agrees());
  EXPECT_EQ(comparison.gradient, 0);
}

TEST(Comparison, MeasuresAgainstTheLargestElement) {
  auto other = plain();
  other.parameters[0].value = at::tensor({1.0, 2.0, 3.5, 8.0}).view({2, 2});
  EXPECT_TRUE(compare(plain(), other, 0.0625).agrees());
  const auto comparison = compare(plain(), other, 0.06);
  ASSERT_EQ(comparison.beyond.size(), 1u);
  EXPECT_EQ(comparison.beyond[0].text(),
            "parameter of w[1, 0] = 3.5, one device: 3 (relative 6.2e-02; 1 of 4 elements wrong: one element)");
}

TEST(Comparison, BlamesInTheOrderOfTheComputation) {
  auto other = plain();
  other.loss = 2.5;
  other.gradient_norm = 6;
  other.gradients[0].value = at::tensor({1.0, 4.0});
  const auto comparison = compare(plain(), other, 1e-9);
  ASSERT_EQ(comparison.beyond.size(), 3u);
  EXPECT_EQ(comparison.beyond[0].text(), "loss = 2.5, one device: 2 (relative 2.5e-01)");
  EXPECT_EQ(comparison.beyond[1].kind, "gradient");
  EXPECT_EQ(comparison.beyond[2].kind, "gradient norm");
}

TEST(Comparison, KnowsNotANumber) {
  const double nan = std::nan("");
  const auto with_nan = record(nan, 3, at::tensor({nan, -4.0}), at::tensor({1.0, 2.0, 3.0, 8.0}).view({2, 2}));
  EXPECT_TRUE(compare(with_nan, with_nan, 0).agrees());
  const auto comparison = compare(plain(), with_nan, 1e-9);
  ASSERT_EQ(comparison.beyond.size(), 2u);
  EXPECT_TRUE(std::isinf(comparison.beyond[0].relative));
  EXPECT_EQ(comparison.beyond[1].index, (std::vector<int64_t>{0}));
}

TEST(Comparison, TreatsInfinitiesOfOneSignAsEqual) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto a = record(infinity, 3, at::tensor({infinity, 1.0}), at::ones({1}));
  const auto b = record(infinity, 3, at::tensor({-infinity, 1.0}), at::ones({1}));
  EXPECT_TRUE(compare(a, a, 0).agrees());
  EXPECT_FALSE(compare(a, b, 1e-9).agrees());
}

TEST(Comparison, HandlesEmptyTensorsAndZeros) {
  const auto empty = record(0, 0, at::empty({0, 3}), at::zeros({2}));
  EXPECT_TRUE(compare(empty, empty, 0).agrees());
}

}  // namespace
}  // namespace lockstep

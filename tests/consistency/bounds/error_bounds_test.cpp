// Bounds in closed form: what stands in docs/bounds.md.
#include "consistency/bounds/error_bounds.h"

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include "fuzz/calls/sharded_calls.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::testing {
namespace {

constexpr double kUnit = 0x1p-24, kSmallest = 0x1p-126;

double after(double roundings, double magnitude, double unit = kUnit) {
  return magnitude * (roundings * unit / (1 - roundings * unit)) + roundings * kSmallest;
}

/// Of the first result's first element, of a call on whole operands in double.
double allowed(const char* op, const Stack& leading, double stored_unit = 0) {
  const auto call = make_call(op, leading);
  Stack magnitudes = call.arguments;
  for (auto& value : magnitudes)
    if (value.isTensor() && value.toTensor().is_floating_point()) value = value.toTensor().abs();
  const auto exact = run(call.op, call.arguments);
  const auto* bound = error_bound(*built_in_rules()->find(op));
  const ExactCall exact_call{call.op.schema(), call.arguments, magnitudes, exact, kUnit, stored_unit, 0};
  return bound->allowed(exact_call).at(0).broadcast_to(exact[0].sizes()).flatten()[0].item<double>();
}

at::Tensor doubles(std::vector<double> values) { return at::tensor(values, at::kDouble); }

TEST(ErrorBounds, OfProductsCountTheirSummands) {
  const auto a = doubles({1, -2, 3}).view({1, 3}), b = doubles({4, 5, -6}).view({3, 1});
  EXPECT_DOUBLE_EQ(allowed("mm", {a, b}), after(5, 4 + 10 + 18));
  EXPECT_DOUBLE_EQ(allowed("linear", {a, b.t(), c10::IValue()}), after(6, 32));
  EXPECT_DOUBLE_EQ(allowed("mesh::weight_gradient", {b, b}), after(5, 16 + 25 + 36));
}

TEST(ErrorBounds, OfSumsCountWhatIsAddedUp) {
  const auto x = doubles({1, -2, 3, -4, 5, -6}).view({2, 3});
  EXPECT_DOUBLE_EQ(allowed("sum", {x}), after(7, 21));
  EXPECT_DOUBLE_EQ(allowed("sum.dim_IntList", {x, std::vector<int64_t>{1}}), after(4, 6));
  EXPECT_DOUBLE_EQ(allowed("mean", {x}), after(9, 3.5));
}

TEST(ErrorBounds, OfMultilinearOpsCountWhatTheyGiveOnOnes) {
  const auto x = doubles({1, -2, 3}), y = doubles({4, 5, -6});
  EXPECT_DOUBLE_EQ(allowed("dot", {x, y}), after(4, 32));
  EXPECT_DOUBLE_EQ(
      allowed("convolution", {x.view({1, 1, 3}), y.view({1, 1, 3}), c10::IValue(), std::vector<int64_t>{1},
                              std::vector<int64_t>{0}, std::vector<int64_t>{1}, false, std::vector<int64_t>{0}, 1}),
      after(5, 32));
  const auto twice = at::tensor({0, 0, 1}, at::kLong);
  EXPECT_DOUBLE_EQ(allowed("index_add", {doubles({-1, 1}), 0, twice, x, 2}), after(9, 1 + 2 * 3));
}

TEST(ErrorBounds, OfProductsCountTheirFactors) {
  EXPECT_DOUBLE_EQ(allowed("prod", {doubles({0.5, -2, 3})}), after(4, 3) + 3 * kSmallest * 6);
}

TEST(ErrorBounds, OfLossesCountElementsAndTheirSum) {
  const auto x = doubles({1, -2}), y = doubles({0, 2});
  EXPECT_DOUBLE_EQ(allowed("mse_loss", {x, y, 0}), after(4, 1));
  EXPECT_DOUBLE_EQ(allowed("mse_loss", {x, y, 2}), after(4, 1) + after(4, 16) + after(5, 17));
}

/// What is chosen by a rounded product may be chosen the other way: the jump counts.
TEST(ErrorBounds, OfPiecesAllowTheJumpWhereRoundingChooses) {
  const double jump = std::log1p(std::exp(-1.0));
  EXPECT_GT(allowed("softplus", {doubles({1}), 1, 1}), jump);
  EXPECT_LT(allowed("softplus", {doubles({1.001}), 1, 1}), jump * 1e-4);
}

TEST(ErrorBounds, OfElementsCountTheirOps) {
  const auto x = doubles({-3}), y = doubles({2});
  EXPECT_DOUBLE_EQ(allowed("add.Tensor", {x, y, 4}), after(3, 3 + 8));
  EXPECT_DOUBLE_EQ(allowed("mul.Tensor", {x, y}), after(2, 6));
  EXPECT_DOUBLE_EQ(allowed("div.Tensor", {x, y}), after(3, 1.5));
  EXPECT_DOUBLE_EQ(allowed("exp", {y}), after(8, std::exp(2.0)));
}

/// Own kernels make exponentials below e^-86 zero: all of each may be lost.
TEST(ErrorBounds, OfExponentialsAllowThatSmallOnesAreCut) {
  const auto logits = doubles({-86.5, -86.25, -85}).view({1, 3}), shift = doubles({0});
  double by_rounding = 0;
  for (const double x : {86.5, 86.25, 85.0}) by_rounding += std::exp(-x) * (x + 13);
  EXPECT_DOUBLE_EQ(allowed("mesh::exponential_sum", {logits, shift}), after(1, by_rounding) + 2 * 0x1p-124);
  EXPECT_GT(0x1p-124, std::exp(-86));
}

TEST(ErrorBounds, OfShortDtypesRoundWhatIsStoredOnTheWay) {
  const auto x = doubles({-3}), y = doubles({2});
  EXPECT_DOUBLE_EQ(allowed("mul.Tensor", {x, y}, 0x1p-8), after(2, 6) + after(2, 6, 0x1p-8));
}

TEST(ErrorBounds, AreTwiceTheSumsBeyondHalf) {
  EXPECT_DOUBLE_EQ(rounded(1.0, 0.5, doubles({3}))[0].item<double>(), 3 + kSmallest);
  EXPECT_DOUBLE_EQ(rounded(4.0, 0.5, doubles({3}))[0].item<double>(), 12 + 4 * kSmallest);
}

TEST(ErrorBounds, AreNoneOfWhatRoundsNothing) {
  for (const char* op : {"view", "neg", "maximum", "embedding", "zeros_like", "uniform"})
    EXPECT_EQ(error_bound(*built_in_rules()->find(op))->kind, ErrorBound::Kind::kSameBits) << op;
  EXPECT_EQ(error_bound(*built_in_rules()->find("empty_like"))->kind, ErrorBound::Kind::kUnwritten);
}

}  // namespace
}  // namespace lockstep::testing

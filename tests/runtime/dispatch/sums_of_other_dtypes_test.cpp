// Unfinished sums: what makes another dtype of them, one that does not hold their parts, takes the sum instead.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"

namespace lockstep::testing {
namespace {

class SumsOfOtherDtypes : public ::testing::TestWithParam<lockstep::Numerics> {
 protected:
  SumsOfOtherDtypes() {
    World::Options options;
    options.numerics = GetParam();
    world_ = simulated_world({{"tp", 2}}, std::move(options));
  }

  /// Of the rows of x, which are cut: `then` gets an unfinished sum on the mesh.
  template <class Then>
  void expect_same(const at::Tensor& x, c10::ScalarType dtype, const Then& then) const {
    const auto on_mesh = distribute(x, Layout::parse(world_->mesh("tp=2"), "[tp=S(0)]"));
    EXPECT_EQ(difference(then(on_mesh.sum({0}, false, dtype)), then(x.sum({0}, false, dtype)), {}, true), "");
  }

  std::unique_ptr<World> world_;
};
INSTANTIATE_TEST_SUITE_P(Both, SumsOfOtherDtypes,
                         ::testing::Values(lockstep::Numerics::kNative, lockstep::Numerics::kCanonical));

TEST_P(SumsOfOtherDtypes, OfTruthValuesAreTruthValues) {
  const auto x = at::ones({4, 6}, at::kBool);
  expect_same(x, at::kBool, [](const at::Tensor& sum) { return sum.to(at::kLong); });
  expect_same(x, at::kBool, [](const at::Tensor& sum) { return sum.sum(); });
  expect_same(x, at::kBool, [](const at::Tensor& sum) { return sum * 3; });
}

TEST_P(SumsOfOtherDtypes, WrapBeforeTheyAreWidened) {
  const auto x = at::full({4, 6}, 100, at::kChar);
  expect_same(x, at::kChar, [](const at::Tensor& sum) { return sum.to(at::kLong); });
  expect_same(x, at::kChar, [](const at::Tensor& sum) { return sum.sum(); });
  expect_same(x, at::kChar, [](const at::Tensor& sum) { return at::zeros_like(sum, at::kInt).copy_(sum); });
}

TEST_P(SumsOfOtherDtypes, AreRoundedOnce) {
  const auto x = at::arange(48, at::kLong).reshape({8, 6}) * 1'234'567 + (int64_t{1} << 26) + 1;
  expect_same(x, at::kLong, [](const at::Tensor& sum) { return sum.to(at::kFloat); });
  expect_same(x, at::kLong, [](const at::Tensor& sum) { return sum / 3; });
  expect_same(x, at::kLong, [](const at::Tensor& sum) { return sum.sum(c10::make_optional(at::kDouble)); });
}

/// Two rows that nearly cancel: `wide` holds them, and a narrower dtype their sum alone, 1.
at::Tensor nearly_cancelling(c10::ScalarType wide, double large) {
  return at::stack({at::full({6}, large + 1, wide), at::full({6}, -large, wide)});
}

TEST_P(SumsOfOtherDtypes, AreNarrowedOnce) {
  const auto in_double = nearly_cancelling(at::kDouble, 0x1p30), in_float = nearly_cancelling(at::kFloat, 0x1p10);
  for (const auto narrow : {at::kFloat, at::kBFloat16}) {
    expect_same(in_double, at::kDouble, [=](const at::Tensor& sum) { return sum.to(narrow); });
    expect_same(in_double, at::kDouble, [=](const at::Tensor& sum) { return sum.to(at::kFloat).to(narrow); });
    expect_same(in_double, at::kDouble, [=](const at::Tensor& sum) { return sum.sum(c10::make_optional(narrow)); });
  }
  expect_same(in_float, at::kFloat, [](const at::Tensor& sum) { return sum.to(at::kBFloat16); });
  expect_same(in_float, at::kFloat, [](const at::Tensor& sum) { return sum.to(at::kHalf); });
}

/// What is written keeps its dtype, and its layout where that is possible.
TEST_P(SumsOfOtherDtypes, AreNarrowedOnceWhereTheyAreWritten) {
  const auto in_double = nearly_cancelling(at::kDouble, 0x1p30);
  const auto target = [](const at::Tensor& sum) { return at::zeros_like(sum, at::kFloat); };
  expect_same(in_double, at::kDouble, [=](const at::Tensor& sum) { return target(sum).copy_(sum); });
  expect_same(in_double, at::kDouble, [=](const at::Tensor& sum) { return target(sum).add_(sum); });
}

TEST_P(SumsOfOtherDtypes, OfComplexNumbersAreNarrowedOnce) {
  if (GetParam() == lockstep::Numerics::kCanonical) return;  // refused
  const auto parts = nearly_cancelling(at::kDouble, 0x1p30);
  expect_same(at::complex(parts, -parts), at::kComplexDouble,
              [](const at::Tensor& sum) { return at::view_as_real(sum.to(at::kComplexFloat)); });
}

TEST_P(SumsOfOtherDtypes, OfFloatingNumbersCutTheSumOff) {
  const auto x = at::full({4, 6}, 0.75F);
  const auto sum_up = [](const at::Tensor& sum) { return sum.sum(c10::make_optional(at::kLong)); };
  expect_same(x, at::kFloat, sum_up);
  expect_same(x - 0.5F, at::kFloat, sum_up);
}

}  // namespace
}  // namespace lockstep::testing

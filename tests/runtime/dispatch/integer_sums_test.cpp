// Unfinished sums of integers and truth values: what makes another dtype of them takes the sum, not its parts.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"

namespace lockstep::testing {
namespace {

class IntegerSums : public ::testing::TestWithParam<lockstep::Numerics> {
 protected:
  IntegerSums() {
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
INSTANTIATE_TEST_SUITE_P(Both, IntegerSums,
                         ::testing::Values(lockstep::Numerics::kNative, lockstep::Numerics::kCanonical));

TEST_P(IntegerSums, OfTruthValuesAreTruthValues) {
  const auto x = at::ones({4, 6}, at::kBool);
  expect_same(x, at::kBool, [](const at::Tensor& sum) { return sum.to(at::kLong); });
  expect_same(x, at::kBool, [](const at::Tensor& sum) { return sum.sum(); });
  expect_same(x, at::kBool, [](const at::Tensor& sum) { return sum * 3; });
}

TEST_P(IntegerSums, WrapBeforeTheyAreWidened) {
  const auto x = at::full({4, 6}, 100, at::kChar);
  expect_same(x, at::kChar, [](const at::Tensor& sum) { return sum.to(at::kLong); });
  expect_same(x, at::kChar, [](const at::Tensor& sum) { return sum.sum(); });
  expect_same(x, at::kChar, [](const at::Tensor& sum) { return at::zeros_like(sum, at::kInt).copy_(sum); });
}

TEST_P(IntegerSums, AreRoundedOnce) {
  const auto x = at::arange(48, at::kLong).reshape({8, 6}) * 1'234'567 + (int64_t{1} << 26) + 1;
  expect_same(x, at::kLong, [](const at::Tensor& sum) { return sum.to(at::kFloat); });
  expect_same(x, at::kLong, [](const at::Tensor& sum) { return sum / 3; });
  expect_same(x, at::kLong, [](const at::Tensor& sum) { return sum.sum(c10::make_optional(at::kDouble)); });
}

TEST_P(IntegerSums, OfFloatingNumbersCutTheSumOff) {
  const auto x = at::full({4, 6}, 0.75F);
  const auto sum_up = [](const at::Tensor& sum) { return sum.sum(c10::make_optional(at::kLong)); };
  expect_same(x, at::kFloat, sum_up);
  expect_same(x - 0.5F, at::kFloat, sum_up);
}

}  // namespace
}  // namespace lockstep::testing

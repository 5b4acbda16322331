// Ops that write an unfinished sum in place: it is finished first where the op is not linear in it.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class WrittenSums : public ::testing::TestWithParam<Numerics> {
 protected:
  WrittenSums() {
    World::Options options;
    options.numerics = GetParam();
    world_ = testing::simulated_world({{"dp", 2}, {"tp", 3}}, std::move(options));
  }
  const Mesh& mesh() { return world_->mesh("dp=2,tp=3"); }
  at::Tensor sum_of_ranks(const at::Tensor& value) {
    return testing::scatter(value, Layout::parse(mesh(), "[dp=S(0), tp=P(sum)]"));
  }
  at::Tensor whole(const at::Tensor& value) { return distribute(value, Layout::replicated(mesh())); }

  std::unique_ptr<World> world_;
  const at::Tensor value_ = at::arange(24, at::kFloat).view({6, 4}) - 7, bias_ = at::arange(4, at::kFloat) * 100;
};
INSTANTIATE_TEST_SUITE_P(Both, WrittenSums, ::testing::Values(Numerics::kNative, Numerics::kCanonical));

TEST_P(WrittenSums, AreFinishedBeforeWhatIsNotLinear) {
  auto x = sum_of_ranks(value_);
  x.exp_();
  EXPECT_TRUE(at::allclose(gather(x), value_.exp()));
  EXPECT_EQ(layout_of(x).text(), "[dp=S(0), tp=R]");
}

/// torch::nn's linear layer does so with tensors of three dimensions.
TEST_P(WrittenSums, TakeABiasThatAllRanksHave) {
  auto x = sum_of_ranks(value_);
  x += whole(bias_);
  EXPECT_TRUE(gather(x).equal(value_ + bias_)) << layout_of(x).text();
}

TEST_P(WrittenSums, ThatAreTheOtherOperandTooAreTakenOnce) {
  auto x = sum_of_ranks(value_);
  x.mul_(x);
  EXPECT_TRUE(gather(x).equal(value_ * value_));
}

TEST_P(WrittenSums, AreRefusedWhereAViewWouldNotSeeIt) {
  auto x = sum_of_ranks(value_);
  const auto view = x.t();
  try {
    x.exp_();
    FAIL() << "written: " << layout_of(x).text();
  } catch (const BadInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("an unfinished sum that is a view or has views; redistribute() it first"));
  }
  EXPECT_TRUE(gather(x).equal(value_));
  EXPECT_TRUE(gather(view).equal(value_.t()));
}

}  // namespace
}  // namespace lockstep

#include "trainer/sharding/expert_balance.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/context/run_context.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

struct Root : models::Module {};

/// Biases of four experts, on two ranks.
class Balance : public ::testing::Test {
 protected:
  Balance() : use_(context_), world_(lockstep::testing::simulated_world({{"dp_shard", 2}})) {
    bias_.make_buffer();
    bias_.assign(distribute(at::tensor({1.f, 2.f, 3.f, 4.f}), Layout::replicated(mesh())));
  }
  const Mesh& mesh() { return world_->mesh({{"dp_shard", 2}}); }

  /// What the two ranks counted, a part of the sum each.
  at::Tensor counts(const std::vector<int64_t>& first, const std::vector<int64_t>& second) {
    return from_shards({at::tensor(first), at::tensor(second)}, Layout::parse(mesh(), "[dp_shard=P(sum)]"), {4},
                       c10::kLong);
  }
  at::Tensor biases() { return gather(bias_.tensor()); }

  RunContext context_;
  RunContext::Use use_;
  std::unique_ptr<World> world_;
  Root root_;
  models::Parameter bias_{root_, "bias", {4}, "router", models::Initial::fill(0)};
  ExpertBalance balance_;
};

/// Of 16 choices 4 are the mean: two experts are above it, one is below, one at it; the mean of the signs is -1/4.
TEST_F(Balance, MovesBiasesByTheSignOfWhatIsMissing) {
  context_.begin_microbatch(1, 0);
  balance_.add(bias_, counts({3, 0, 0, 2}, {2, 1, 0, 0}), 0.5);
  context_.begin_microbatch(1, 1);
  balance_.add(bias_, counts({1, 0, 1, 0}, {1, 0, 3, 2}), 0.5);
  balance_.finish();  // in sum 7, 1, 4, 4
  EXPECT_TRUE(at::equal(biases(), at::tensor({0.5f, 2.5f, 3.f, 4.f}))) << biases();
  balance_.add(bias_, counts({2, 1, 1, 1}, {3, 1, 4, 3}), 1);  // 5, 2, 5, 4 of 16: signs -1, 1, -1, 0
  balance_.finish();
  EXPECT_TRUE(at::equal(biases(), at::tensor({-0.25f, 3.75f, 2.25f, 4.25f}))) << biases();
}

/// A block that is run again in backward counts again.
TEST_F(Balance, CountsAMicrobatchOnce) {
  context_.begin_microbatch(1, 0);
  balance_.add(bias_, counts({2, 0, 0, 0}, {0, 0, 0, 0}), 1);
  balance_.add(bias_, counts({2, 0, 0, 0}, {0, 0, 0, 0}), 1);
  context_.begin_microbatch(1, 1);
  balance_.add(bias_, counts({0, 2, 4, 0}, {0, 2, 0, 2}), 1);
  balance_.finish();  // 2, 4, 4, 2 of 12; counted twice the first would be above the mean
  EXPECT_TRUE(at::equal(biases(), at::tensor({2.f, 1.f, 2.f, 5.f}))) << biases();
}

TEST_F(Balance, ForgetsAStepThatDidNotEnd) {
  context_.begin_microbatch(1, 0);
  balance_.add(bias_, counts({4, 0, 0, 0}, {0, 0, 0, 0}), 1);
  balance_.forget();
  balance_.finish();
  EXPECT_TRUE(at::equal(biases(), at::tensor({1.f, 2.f, 3.f, 4.f}))) << biases();
}

TEST_F(Balance, LossesComeAlongWithAGradient) {
  context_.begin_microbatch(1, 0);
  const auto layout = Layout::parse(mesh(), "[dp_shard=S(0)]");
  auto x = distribute(at::arange(8, at::kFloat).view({4, 2}), layout).requires_grad_();
  auto losses = distribute(at::tensor({1.f, 2.f, 3.f, 4.f}), layout).requires_grad_();
  const auto y = with_gradient_of(x, losses, 0.25);
  EXPECT_TRUE(at::equal(gather(y.detach()), at::arange(8, at::kFloat).view({4, 2})));
  y.backward(distribute(at::full({4, 2}, 3.f), layout));
  EXPECT_TRUE(at::equal(gather(x.grad()), at::full({4, 2}, 3.f)));
  EXPECT_TRUE(at::equal(gather(losses.grad()), at::full({4}, 0.25f)));
}

}  // namespace
}  // namespace lockstep::trainer

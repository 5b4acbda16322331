#include "trainer/optim/weight_average.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "trainer/job/job.h"

namespace lockstep::trainer {
namespace {

Job job_of(std::optional<double> decay) {
  Job job;
  job.optimizer.name = "SGD";
  job.optimizer.ema_decay = decay;
  return job;
}

ParameterState state_of(const Optimizer& optimizer, const at::Tensor& value) {
  ParameterState state{
      "weight", value, true, {}, models::Division(value.sizes().vec(), {{"weight", value.size(0), {}}})};
  state.slots = new_slots(optimizer, state);
  return state;
}

TEST(WeightAverage, StartsAsTheValueAndFollowsItsClosedForm) {
  constexpr double kDecay = 0.75;
  const auto optimizer = make_optimizer(job_of(kDecay));
  const auto state = state_of(*optimizer, at::arange(3, at::kDouble));
  EXPECT_TRUE(at::equal(averaged_value(state), state.value));
  auto expected = state.value.clone();
  for (int64_t step = 1; step <= 4; ++step) {
    optimizer->update(state, at::ones({3}, at::kDouble).mul(step), optimizer->scalars(step, 0.1, 1));
    expected = kDecay * expected + (1 - kDecay) * state.value;
    EXPECT_LT((averaged_value(state) - expected).abs().max().item<double>(), 1e-15) << step;
    EXPECT_FALSE(at::equal(averaged_value(state), state.value));
  }
}

TEST(WeightAverage, IsTheLastSlotAndLeavesTheUpdateAsItIs) {
  auto with = job_of(0.9), without = job_of({});
  with.optimizer.momentum = without.optimizer.momentum = 0.9;
  const auto averaging = make_optimizer(with), plain = make_optimizer(without);
  const auto one = state_of(*averaging, at::ones({4})), other = state_of(*plain, at::ones({4}));
  ASSERT_EQ(one.tensors().size(), 3u);
  EXPECT_EQ(one.tensors()[2].prefix, "optimizer.average.");
  for (int64_t step = 1; step <= 3; ++step) {
    averaging->update(one, at::ones({4}), averaging->scalars(step, 0.1, 1));
    plain->update(other, at::ones({4}), plain->scalars(step, 0.1, 1));
  }
  EXPECT_TRUE(at::equal(one.value, other.value));
  EXPECT_TRUE(averaged_value(other).is_same(other.value)) << "the parameter, where no average is kept";
}

TEST(WeightAverage, WithADecayOfZeroIsTheParameter) {
  const auto optimizer = make_optimizer(job_of(0.0));
  const auto state = state_of(*optimizer, at::ones({4}));
  optimizer->update(state, at::ones({4}), optimizer->scalars(1, 0.1, 1));
  EXPECT_TRUE(at::equal(averaged_value(state), state.value));
}

}  // namespace
}  // namespace lockstep::trainer

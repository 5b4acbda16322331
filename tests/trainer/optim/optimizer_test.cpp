// Optimizers beside LibTorch's own, on one device; tests/trainer/step/optimizers_on_meshes_test.cpp has the meshes.
#include "trainer/optim/optimizer.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "trainer/job/job.h"
#include "trainer/job/offered_names.h"

namespace lockstep::trainer {
namespace {

Job job_of(const char* name, std::optional<double> momentum = {}, double weight_decay = 0.1) {
  Job job;
  job.optimizer.name = name;
  job.optimizer.momentum = momentum;
  job.optimizer.weight_decay = weight_decay;
  return job;
}

ParameterState state_of(const Optimizer& optimizer, const at::Tensor& value) {
  ParameterState state{
      "weight", value, true, {}, models::Division(value.sizes().vec(), {{"weight", value.size(0), {}}})};
  state.slots = new_slots(optimizer, state);
  return state;
}

at::Tensor gradient_at(int64_t step) { return at::sin(at::arange(35, at::kDouble).add(step * 3)).view({5, 7}); }

/// Five steps of ours and of `peer`, whose gradients come scaled. A parameter of one dimension if it is `flat`.
template <class Peer, class Settings>
void expect_like(const Job& job, const Settings& settings, bool flat = false) {
  constexpr double kRate = 0.05, kScale = 0.5;
  const auto optimizer = make_optimizer(job);
  const std::vector<int64_t> sizes = flat ? std::vector<int64_t>{35} : std::vector<int64_t>{5, 7};
  const auto start = at::cos(at::arange(35, at::kDouble)).view(sizes);
  const auto ours = state_of(*optimizer, start.clone());
  auto theirs = start.clone().requires_grad_();
  Peer peer({theirs}, settings);
  for (int64_t step = 1; step <= 5; ++step) {
    {
      const at::NoGradGuard no_grad;
      optimizer->update(ours, gradient_at(step).view(sizes), optimizer->scalars(step, kRate, kScale));
    }
    theirs.mutable_grad() = gradient_at(step).view(sizes) * kScale;
    peer.step();
    EXPECT_LT((ours.value - theirs.detach()).abs().max().template item<double>(), 1e-14) << "step " << step;
  }
}

TEST(Sgd, IsLibTorchs) {
  using torch::optim::SGD;
  using torch::optim::SGDOptions;
  expect_like<SGD>(job_of("SGD", {}, 0), SGDOptions(0.05));
  expect_like<SGD>(job_of("SGD", {}, 0.1), SGDOptions(0.05).weight_decay(0.1));
  expect_like<SGD>(job_of("SGD", 0.9, 0), SGDOptions(0.05).momentum(0.9));
  expect_like<SGD>(job_of("SGD", 0.9, 0.1), SGDOptions(0.05).momentum(0.9).weight_decay(0.1));
}

TEST(Adamw, IsLibTorchs) {
  using torch::optim::AdamWOptions;
  expect_like<torch::optim::AdamW>(job_of("AdamW"), AdamWOptions(0.05).betas({0.9, 0.95}).eps(1e-8).weight_decay(0.1));
}

TEST(Sgd, IsLibTorchsWithNesterovsMomentum) {
  using torch::optim::SGD;
  using torch::optim::SGDOptions;
  auto job = job_of("SGD", 0.9, 0.1);
  job.optimizer.nesterov = true;
  expect_like<SGD>(job, SGDOptions(0.05).momentum(0.9).weight_decay(0.1).nesterov(true));
  job.optimizer.weight_decay = 0;
  expect_like<SGD>(job, SGDOptions(0.05).momentum(0.9).nesterov(true), /*flat=*/true);
}

TEST(Adam, IsLibTorchs) {
  using torch::optim::AdamOptions;
  const auto options = AdamOptions(0.05).betas({0.9, 0.95}).eps(1e-8);
  expect_like<torch::optim::Adam>(job_of("Adam"), AdamOptions(options).weight_decay(0.1));
  expect_like<torch::optim::Adam>(job_of("Adam", {}, 0), options, /*flat=*/true);
}

TEST(Adam, WithoutDecayIsAdamWWithoutDecayBitByBit) {
  const auto adam = make_optimizer(job_of("Adam", {}, 0)), adamw = make_optimizer(job_of("AdamW", {}, 0));
  const auto one = state_of(*adam, at::ones({5, 7})), other = state_of(*adamw, at::ones({5, 7}));
  for (int64_t step = 1; step <= 3; ++step) {
    adam->update(one, gradient_at(step).to(at::kFloat), adam->scalars(step, 0.1, 0.3));
    adamw->update(other, gradient_at(step).to(at::kFloat), adamw->scalars(step, 0.1, 0.3));
  }
  EXPECT_TRUE(at::equal(one.value, other.value));
}

/// Chen et al. (2023), Algorithm 2, element by element.
TEST(Lion, IsItsPapers) {
  constexpr double kRate = 0.05, kScale = 0.5, kDecay = 0.1, kBeta1 = 0.9, kBeta2 = 0.95;
  const auto optimizer = make_optimizer(job_of("Lion"));
  const auto state = state_of(*optimizer, at::cos(at::arange(35, at::kDouble)).view({5, 7}));
  std::vector<double> value(35), momentum(35);
  for (size_t i = 0; i < 35; ++i) value[i] = std::cos(static_cast<double>(i));
  for (int64_t step = 1; step <= 5; ++step) {
    optimizer->update(state, gradient_at(step), optimizer->scalars(step, kRate, kScale));
    for (size_t i = 0; i < 35; ++i) {
      const double gradient = kScale * gradient_at(step).view({-1})[static_cast<int64_t>(i)].item<double>();
      const double mixed = kBeta1 * momentum[i] + (1 - kBeta1) * gradient;
      value[i] -= kRate * ((mixed > 0 ? 1 : mixed < 0 ? -1 : 0) + kDecay * value[i]);
      momentum[i] = kBeta2 * momentum[i] + (1 - kBeta2) * gradient;
      EXPECT_NEAR(state.value.view({-1})[static_cast<int64_t>(i)].item<double>(), value[i], 1e-14) << step;
    }
  }
}

TEST(Lion, DoesNotMoveWhatHasNoGradient) {
  const auto optimizer = make_optimizer(job_of("Lion", {}, 0));
  const auto state = state_of(*optimizer, at::ones({3}));
  optimizer->update(state, at::zeros({3}), optimizer->scalars(1, 0.1, 1));
  EXPECT_TRUE(at::equal(state.value, at::ones({3})));
}

TEST(Optimizers, DoNotWriteTheGradient) {
  for (const auto& choice : kOptimizerNames) {
    const auto optimizer = make_optimizer(job_of(choice.name.data()));
    const auto state = state_of(*optimizer, at::ones({5, 7}, at::kDouble));
    const auto gradient = gradient_at(1);
    auto scalars = optimizer->scalars(1, 0.1, 0.5);
    optimizer->measure(state, gradient, scalars);
    scalars.push_back({kMeasuredRoot, 1});
    optimizer->update(state, gradient, scalars);
    EXPECT_TRUE(at::equal(gradient, gradient_at(1))) << choice.name;
  }
}

/// A group's factor is of the rate alone: of SGD without decay, of the whole update.
TEST(Optimizers, TakeTheRateAndTheDecayOfTheParametersGroup) {
  for (const char* name : {"AdamW", "Adam", "SGD", "Lion", "Ranger21"}) {
    auto job = job_of(name);
    job.ranger21.lookahead = false;
    const auto updated = [](const Job& of, double rate, const ParameterSettings& settings) {
      const auto optimizer = make_optimizer(of);
      auto state = state_of(*optimizer, at::full({5, 7}, 2.0, at::kDouble));
      state.settings = settings;
      auto scalars = optimizer->scalars(1, rate, 1);
      optimizer->measure(state, gradient_at(1), scalars);
      scalars.push_back({kMeasuredRoot, 0.5});
      optimizer->update(state, gradient_at(1), scalars);
      return state.value;
    };
    auto other = job;
    other.optimizer.weight_decay = 0.7;
    EXPECT_TRUE(at::equal(updated(job, 0.5, {.lr_factor = 0.25}), updated(job, 0.125, {}))) << name;
    EXPECT_TRUE(at::equal(updated(job, 0.5, {.weight_decay = 0.7}), updated(other, 0.5, {}))) << name;
    EXPECT_FALSE(at::equal(updated(job, 0.5, {}), updated(other, 0.5, {}))) << name;
  }
}

/// As torch.optim does with model.parameters(), which is what torchtitan gives it.
TEST(Optimizers, DecayNormsAndBiasesUnlessTheJobLeavesThemOut) {
  using torch::optim::AdamW;
  using torch::optim::AdamWOptions;
  using torch::optim::SGD;
  using torch::optim::SGDOptions;
  const auto adamw = [](double decay) { return AdamWOptions(0.05).betas({0.9, 0.95}).eps(1e-8).weight_decay(decay); };
  expect_like<AdamW>(job_of("AdamW"), adamw(0.1), /*flat=*/true);
  expect_like<SGD>(job_of("SGD"), SGDOptions(0.05).weight_decay(0.1), /*flat=*/true);
  auto adamw_job = job_of("AdamW"), sgd_job = job_of("SGD");
  adamw_job.optimizer.decay_1d = sgd_job.optimizer.decay_1d = false;
  expect_like<AdamW>(adamw_job, adamw(0), /*flat=*/true);
  expect_like<SGD>(sgd_job, SGDOptions(0.05), /*flat=*/true);
  expect_like<AdamW>(adamw_job, adamw(0.1));
  expect_like<SGD>(sgd_job, SGDOptions(0.05).weight_decay(0.1));
}

std::string names(const std::vector<StepScalar>& scalars) {
  std::string text;
  for (const auto& scalar : scalars) text += fmt::format("{} ", scalar.name);
  return text;
}

TEST(Optimizers, KeepAndDeriveWhatTheySay) {
  const auto adamw = make_optimizer(job_of("AdamW")), plain = make_optimizer(job_of("SGD")),
             momentum = make_optimizer(job_of("SGD", 0.9));
  EXPECT_EQ(names(adamw->scalars(1, 1, 1)), "learning_rate bias_correction1 bias_correction2 gradient_scale ");
  EXPECT_EQ(names(momentum->scalars(1, 1, 1)), "learning_rate gradient_scale ");
  EXPECT_EQ(value_of(adamw->scalars(2, 1, 1), "bias_correction1"), 1 - 0.9 * 0.9);
  EXPECT_EQ(state_of(*adamw, at::ones({5, 7})).slots.size(), 2u);
  EXPECT_EQ(state_of(*plain, at::ones({5, 7})).slots.size(), 0u);
  ASSERT_EQ(state_of(*momentum, at::ones({5, 7})).slots.size(), 1u);
  const auto tensors = state_of(*momentum, at::ones({5, 7})).tensors();
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].prefix, "");
  EXPECT_EQ(tensors[1].prefix, "optimizer.momentum.");
  EXPECT_THROW(value_of(momentum->scalars(1, 1, 1), "bias_correction1"), InternalError);
  EXPECT_THROW(state_of(*momentum, at::ones({5, 7})).slot("mean"), InternalError);
}

TEST(Optimizers, EveryNameThatJobsMaySayIsBuilt) {
  for (const auto& choice : kOptimizerNames) EXPECT_TRUE(make_optimizer(job_of(choice.name.data())));
  EXPECT_THROW(make_optimizer(job_of("Adamw")), BadInput);
}

/// A kind whose values a checkpoint could not hold.
struct WithDoubleSlot final : Optimizer {
  std::vector<SlotKind> slots(const ParameterState&) const override { return {{"wide", c10::kDouble}}; }
  std::vector<StepScalar> scalars(int64_t, double, double) const override { return {}; }
  void update(const ParameterState&, const at::Tensor&, std::span<const StepScalar>) const override {}
};

TEST(Optimizers, SlotsThatCheckpointsCannotHoldAreRefused) {
  EXPECT_THROW(state_of(WithDoubleSlot(), at::ones({2})), InternalError);
}

}  // namespace
}  // namespace lockstep::trainer

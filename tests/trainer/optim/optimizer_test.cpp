// Optimizers beside LibTorch's own, on one device; tests/trainer/step/optimizers_on_meshes_test.cpp has the meshes.
#include "trainer/optim/optimizer.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

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
  return {"weight", value, true, new_slots(optimizer, value),
          models::Division(value.sizes().vec(), {{"weight", value.size(0), {}}})};
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

TEST(Optimizers, DoNotWriteTheGradient) {
  for (const char* name : {"AdamW", "SGD"}) {
    const auto optimizer = make_optimizer(job_of(name));
    const auto state = state_of(*optimizer, at::ones({5, 7}, at::kDouble));
    const auto gradient = gradient_at(1);
    optimizer->update(state, gradient, optimizer->scalars(1, 0.1, 0.5));
    EXPECT_TRUE(at::equal(gradient, gradient_at(1))) << name;
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
  EXPECT_EQ(adamw->slots().size(), 2u);
  EXPECT_EQ(plain->slots().size(), 0u);
  ASSERT_EQ(momentum->slots().size(), 1u);
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
  std::vector<SlotKind> slots() const override { return {{"wide", c10::kDouble}}; }
  std::vector<StepScalar> scalars(int64_t, double, double) const override { return {}; }
  void update(const ParameterState&, const at::Tensor&, std::span<const StepScalar>) const override {}
};

TEST(Optimizers, SlotsThatCheckpointsCannotHoldAreRefused) {
  EXPECT_THROW(new_slots(WithDoubleSlot(), at::ones({2})), InternalError);
}

}  // namespace
}  // namespace lockstep::trainer

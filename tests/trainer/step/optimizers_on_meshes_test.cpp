// Training with each optimizer on meshes: one device's bits, frozen parameters, and checkpoints of what it keeps.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/run_context.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/state/state_checkpoint.h"
#include "trainer/state/state_digest.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kVocabulary = 515;

/// Large enough for sums of several leaves, which meshes cut.
std::unique_ptr<models::Model> cut_llama() {
  models::LlamaOptions options;
  options.width = 96;
  options.layers = 1;
  options.heads = 8;
  options.key_value_heads = 4;
  options.hidden = 224;
  options.vocabulary = kVocabulary;
  options.length = 33;
  options.cut_between_leaves = true;
  return std::make_unique<models::Llama>(options);
}

Job sgd_job(std::optional<double> momentum = 0.9) {
  auto job = testing::small_job();
  job.numerics.mode = kCanonicalMode;
  job.training.seq_len = 33;
  job.training.global_batch_size = 8;
  job.training.local_batch_size = 1;
  job.optimizer.name = "SGD";
  job.optimizer.momentum = momentum;
  return job;
}

TrainingRun::Options options_on(const std::string& mesh) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = cut_llama;
  return options;
}

TokenBatch batch_of(const Job& job, int64_t step) { return testing::batch_for(job, step, kVocabulary); }

void expect_one_devices_bits(const Job& job, const TrainingRun::Options& options) {
  StepVerifier verifier(job, options);
  for (int64_t step = 1; step <= 3; ++step) {
    const auto check = verifier.check(step, batch_of(job, step), 1e-2);
    ASSERT_TRUE(check.comparison.agrees() && check.comparison.differing_bits == 0)
        << options.mesh.text() << ", step " << step << ": " << check.comparison.beyond[0].text();
  }
}

class SgdBits : public ::testing::TestWithParam<const char*> {};

TEST_P(SgdBits, AreOneDevices) {
  expect_one_devices_bits(sgd_job(), options_on(GetParam()));
  expect_one_devices_bits(sgd_job(std::nullopt), options_on(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Meshes, SgdBits,
                         ::testing::Values("dp_replicate=2", "dp_shard=2", "dp_shard=8", "tp=2", "tp=3", "cp=2",
                                           "dp_shard=2,tp=2", "dp_replicate=2,dp_shard=2,tp=2", "pp=2,dp_shard=2"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           for (auto& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

/// One step with gradients scaled to nothing: each parameter shrinks by rate x decay, those of one dimension if asked
/// to.
TEST(WeightDecay, ReachesParametersOfOneDimensionOnMeshesAsTheJobSays) {
  constexpr double kRate = 0.1, kDecay = 0.5;
  for (const char* name : {"AdamW", "SGD"})
    for (const bool decays : {true, false}) {
      auto job = sgd_job(std::nullopt);
      job.optimizer.name = name;
      job.optimizer.weight_decay = kDecay;
      job.optimizer.decay_1d = decays;
      TrainingRun run(job, options_on("dp_shard=2,tp=2"));
      const auto optimizer = make_optimizer(job);
      for (const auto& entry : run.state()) {
        const auto before = gather(entry.value).clone();
        const at::NoGradGuard no_grad;
        optimizer->update(entry, at::zeros_like(entry.value), optimizer->scalars(1, kRate, 1));
        const bool shrinks = decays || before.dim() > 1;
        const auto expected = before * (shrinks ? 1 - kRate * kDecay : 1);
        EXPECT_LT((gather(entry.value) - expected).abs().max().item<double>(), 1e-6) << name << " " << entry.name;
      }
      expect_one_devices_bits(job, options_on("dp_shard=2,tp=2"));
    }
}

TEST(SgdBits, InNativeNumericsAgreeInFloat64) {
  auto job = sgd_job();
  job.numerics.mode = kNativeMode;
  StepVerifier verifier(job, options_on("dp_shard=2,tp=2"));
  for (int64_t step = 1; step <= 2; ++step)
    EXPECT_TRUE(verifier.check(step, batch_of(job, step), 1e-2).comparison.agrees());
}

/// The lowest bit of what an optimizer multiplies, in one element on one rank.
void product_with_a_flipped_bit(const LocalCall& call, torch::jit::Stack& stack) {
  call.op.callBoxed(stack);
  const auto result = stack[0].toTensor();
  if (RunContext::current().phase() != Phase::kOptimizer || call.index != 1 || result.size(0) < 200) return;
  *static_cast<uint32_t*>(result.mutable_data_ptr()) ^= 1;
}

TEST(SgdBits, AFlippedOneIsFoundAndNamed) {
  auto options = options_on("dp_shard=2");
  Rule rule = *built_in_rules(Numerics::kCanonical)->find("mul.Scalar");
  rule.local = product_with_a_flipped_bit;
  options.rules = built_in_rules(Numerics::kCanonical)->with(rule);
  StepVerifier verifier(sgd_job(), options);
  const auto check = verifier.check(1, batch_of(sgd_job(), 1), 1e-2);
  ASSERT_FALSE(check.comparison.agrees());
  EXPECT_GT(check.comparison.differing_bits, 0);
  ASSERT_TRUE(check.blame);
  EXPECT_THAT(check.blame->text(), ::testing::HasSubstr("optimizer, tok_embeddings.weight, mul"));
  std::string names;  // the worst of each kind
  for (const auto& difference : check.comparison.beyond) names += difference.text() + "\n";
  EXPECT_THAT(names, ::testing::HasSubstr("optimizer state of momentum of"));
}

TEST(OptimizerState, OfSgdGoesFromMeshToMeshAndOnBitByBit) {
  const auto job = sgd_job();
  TrainingRun run(job, options_on("dp_shard=2,tp=2"));
  run.step(1, batch_of(job, 1), 1e-2);
  const TemporaryFolder folder;
  save_state(folder.file("c"), {1, 8, ""}, run.state());
  const Checkpoint checkpoint(folder.file("c"));
  EXPECT_TRUE(checkpoint.tensors().contains("optimizer.momentum.layers.0.attention.wq.weight"));
  EXPECT_FALSE(checkpoint.tensors().contains("optimizer.mean.norm.weight"));
  EXPECT_EQ(checkpoint.tensors().size() % 2, 0u);
  TrainingRun again(job, options_on("tp=3"));
  load_state(folder.file("c"), again.state());
  EXPECT_EQ(state_digest(again.state()), state_digest(run.state()));
  run.step(2, batch_of(job, 2), 1e-2);
  again.step(2, batch_of(job, 2), 1e-2);
  EXPECT_EQ(state_digest(again.state()), state_digest(run.state()));
}

std::string problem(const std::string& folder, TrainingRun run) {
  try {
    load_state(folder, run.state());
    return "";
  } catch (const BadInput& error) {
    return std::string(error.what()).substr(folder.size() + 2);
  }
}

TEST(OptimizerState, OfAnotherOptimizerDoesNotFit) {
  const TemporaryFolder folder;
  TrainingRun momentum(sgd_job(), options_on("one device")), plain(sgd_job(std::nullopt), options_on("one device"));
  save_state(folder.file("momentum"), {1, 8, ""}, momentum.state());
  save_state(folder.file("plain"), {1, 8, ""}, plain.state());
  const std::string reason = ": the job's model or optimizer is another than the one that was saved.";
  const std::string slot = "optimizer.momentum.layers.0.attention.wk.weight";
  EXPECT_EQ(problem(folder.file("momentum"), {sgd_job(std::nullopt), options_on("one device")}),
            "holds " + slot + reason);
  EXPECT_EQ(problem(folder.file("plain"), {sgd_job(), options_on("one device")}), "has no " + slot + reason);
  EXPECT_EQ(problem(folder.file("plain"), {sgd_job(std::nullopt), options_on("dp_shard=2")}), "");
}

/// Counts steps in a slot of another dtype than the parameter's.
struct WithBfloat16Slot final : Optimizer {
  std::vector<SlotKind> slots(const ParameterState&) const override { return {{"count", c10::kBFloat16}, {"last"}}; }
  std::vector<StepScalar> scalars(int64_t, double, double) const override { return {}; }
  void update(const ParameterState& parameter, const at::Tensor& gradient, std::span<const StepScalar>) const override {
    at::Tensor(parameter.slot("count")).add_(1);
    at::Tensor(parameter.slot("last")).copy_(gradient);
  }
};

TEST(OptimizerState, SlotsMayHaveADtypeOfTheirOwn) {
  const auto make = [](const char* mesh) {
    auto options = options_on(mesh);
    options.make_optimizer = [] { return std::make_unique<WithBfloat16Slot>(); };
    return TrainingRun(sgd_job(), options);
  };
  auto run = make("dp_shard=2,tp=2");
  run.step(1, batch_of(sgd_job(), 1), 1e-2);
  run.step(2, batch_of(sgd_job(), 2), 1e-2);
  const auto& count = run.state()[0].slot("count");
  EXPECT_EQ(count.scalar_type(), c10::kBFloat16);
  EXPECT_EQ(gather(count).max().item<float>(), 2);
  const TemporaryFolder folder;
  save_state(folder.file("c"), {2, 16, ""}, run.state());
  auto again = make("one device");
  load_state(folder.file("c"), again.state());
  EXPECT_EQ(state_digest(again.state()), state_digest(run.state()));
}

std::unique_ptr<models::Model> half_frozen_llama() {
  auto model = cut_llama();
  for (auto* parameter : model->parameters())
    if (parameter->name().find("attention") != std::string::npos || parameter->name() == "tok_embeddings.weight")
      parameter->freeze();
  return model;
}

TEST(FrozenParameters, StayAndKeepNoOptimizerState) {
  auto options = options_on("dp_shard=2,tp=2");
  options.make_model = half_frozen_llama;
  for (const char* recomputes : {"none", "full"}) {
    auto job = sgd_job();
    job.activation_checkpoint.mode = recomputes;
    expect_one_devices_bits(job, options);
  }
  TrainingRun run(sgd_job(), options);
  std::vector<at::Tensor> before;
  for (const auto& entry : run.state()) before.push_back(gather(entry.value).clone());
  run.step(1, batch_of(sgd_job(), 1), 1e-2);
  size_t frozen = 0;
  for (size_t p = 0; p < before.size(); ++p) {
    const auto& entry = run.state()[p];
    frozen += entry.trainable ? 0 : 1;
    EXPECT_EQ(entry.slots.size(), entry.trainable ? 1u : 0u) << entry.name;
    EXPECT_EQ(testing::same_bits(gather(entry.value), before[p]), !entry.trainable) << entry.name;
  }
  EXPECT_EQ(frozen, 4u);
}

}  // namespace
}  // namespace lockstep::trainer

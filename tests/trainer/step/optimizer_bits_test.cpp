// Every optimizer, parameter groups and averages on meshes: one device's bits, native numerics, and checkpoints that go
// from mesh to mesh and on.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/job/offered_names.h"
#include "trainer/optim/weight_average.h"
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

Job job_of(std::string_view name) {
  auto job = testing::small_job();
  job.numerics.mode = kCanonicalMode;
  job.training.seq_len = 33;
  job.training.global_batch_size = 12;
  job.training.local_batch_size = 1;
  job.optimizer.name = name;
  if (name == "SGD") job.optimizer.momentum = 0.9, job.optimizer.nesterov = true;
  job.optimizer.ema_decay = 0.9;
  return job;
}

TrainingRun::Options options_on(const std::string& mesh) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = cut_llama;
  return options;
}

TokenBatch batch_of(const Job& job, int64_t step) { return testing::batch_for(job, step, kVocabulary); }

std::string name_of(std::string text) {
  for (auto& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

class OptimizerBits : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(OptimizerBits, AreOneDevices) {
  const auto& [name, mesh] = GetParam();
  const auto job = job_of(name);
  StepVerifier verifier(job, options_on(mesh));
  for (int64_t step = 1; step <= 3; ++step) {
    const auto check = verifier.check(step, batch_of(job, step), 1e-2);
    ASSERT_TRUE(check.comparison.agrees() && check.comparison.differing_bits == 0)
        << "step " << step << ": " << check.comparison.beyond[0].text();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, OptimizerBits,
    ::testing::Combine(::testing::Values("Adam", "SGD", "Lion", "Muon", "Ranger21"),
                       ::testing::Values("dp_shard=3", "tp=3", "dp_replicate=2,dp_shard=2,tp=2", "cp=2")),
    [](const auto& parameter) {
      return name_of(std::string(std::get<0>(parameter.param)) + "_" + std::get<1>(parameter.param));
    });

class OptimizerKinds : public ::testing::TestWithParam<const char*> {};

TEST_P(OptimizerKinds, AgreeInFloat64UnderNativeNumerics) {
  auto job = job_of(GetParam());
  job.numerics.mode = kNativeMode;
  StepVerifier verifier(job, options_on("dp_shard=2,tp=2"));
  for (int64_t step = 1; step <= 2; ++step) {
    const auto check = verifier.check(step, batch_of(job, step), 1e-2);
    EXPECT_TRUE(check.comparison.agrees()) << "step " << step << ": " << check.comparison.beyond[0].text();
  }
}

TEST_P(OptimizerKinds, GoFromMeshToMeshAndOnBitByBit) {
  const auto job = job_of(GetParam());
  TrainingRun run(job, options_on("dp_shard=2,tp=2"));
  for (int64_t step = 1; step <= 4; ++step) run.step(step, batch_of(job, step), 1e-2);
  const TemporaryFolder folder;
  save_state(folder.file("c"), {4, 8, ""}, run.state());
  TrainingRun again(job, options_on("tp=3"));
  load_state(folder.file("c"), again.state());
  EXPECT_EQ(state_digest(again.state()), state_digest(run.state()));
  run.step(5, batch_of(job, 5), 1e-2);
  again.step(5, batch_of(job, 5), 1e-2);
  EXPECT_EQ(state_digest(again.state()), state_digest(run.state()));
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerKinds, ::testing::Values("Adam", "SGD", "Lion", "Muon", "Ranger21"),
                         [](const auto& parameter) { return std::string(parameter.param); });

Job grouped_job() {
  auto job = job_of("AdamW");
  job.optimizer.groups = {{.pattern = "tok_embeddings.*", .frozen = true},
                          {.pattern = "*.attention.*", .frozen = true},
                          {.pattern = "*norm.weight", .lr_factor = 0.5, .weight_decay = 0.0}};
  return job;
}

TEST(ParameterGroups, OnMeshesHaveOneDevicesBits) {
  const auto job = grouped_job();
  for (const char* mesh : {"dp_shard=3", "dp_shard=2,tp=2"}) {
    StepVerifier verifier(job, options_on(mesh));
    for (int64_t step = 1; step <= 2; ++step)
      EXPECT_EQ(verifier.check(step, batch_of(job, step), 1e-2).comparison.differing_bits, 0) << mesh;
  }
}

/// As of two runs: without groups all gradients, and those of what is not frozen.
TEST(ParameterGroups, FrozenOnesHaveNoGradientNoStateAndNoPartInTheNorm) {
  auto options = options_on("dp_shard=2,tp=2");
  options.keep_gradients = true;
  TrainingRun all(job_of("AdamW"), options), some(grouped_job(), options);
  std::vector<at::Tensor> before;
  for (const auto& entry : some.state()) before.push_back(gather(entry.value).clone());
  const auto batch = batch_of(grouped_job(), 1);
  const auto whole = all.step(1, batch, 1e-2), part = some.step(1, batch, 1e-2);
  double squares = 0;
  size_t frozen = 0, next = 0;
  for (size_t p = 0; p < before.size(); ++p) {
    const auto& entry = some.state()[p];
    const bool stays = testing::same_bits(gather(entry.value), before[p]);
    EXPECT_EQ(stays, !entry.trainable) << entry.name;
    EXPECT_EQ(entry.slots.size(), entry.trainable ? 3u : 0u) << entry.name;
    if (!entry.trainable) {
      ++frozen;
      EXPECT_TRUE(averaged_value(entry).is_same(entry.value));
      continue;
    }
    EXPECT_TRUE(testing::same_bits(gather(part.gradients[next]), gather(whole.gradients[p]))) << entry.name;
    squares += gather(part.gradients[next++]).to(at::kDouble).pow(2).sum().item<double>();
  }
  EXPECT_EQ(frozen, 3u);
  EXPECT_EQ(part.gradients.size(), next);
  EXPECT_NEAR(part.gradient_norm, std::sqrt(squares), 1e-6 * part.gradient_norm);
  EXPECT_LT(part.gradient_norm, whole.gradient_norm);
}

TEST(ParameterGroups, WithOtherFrozenParametersDoNotFitACheckpoint) {
  const TemporaryFolder folder;
  save_state(folder.file("c"), {1, 8, ""}, TrainingRun(grouped_job(), options_on("one device")).state());
  TrainingRun other(job_of("AdamW"), options_on("one device"));
  EXPECT_THROW(load_state(folder.file("c"), other.state()), BadInput);
}

TEST(ParameterGroups, ThatFitNothingEndTheRunBeforeItBegins) {
  auto job = job_of("AdamW");
  job.optimizer.groups = {{.pattern = "*.nrom.weight"}};
  EXPECT_THROW(TrainingRun(job, options_on("tp=2")), BadInput);
}

/// Offered names without a test above are none.
TEST(OptimizerNames, AreAllTested) {
  const std::set<std::string_view> tested{"AdamW", "Adam", "SGD", "Lion", "Muon", "Ranger21"};
  for (const auto& choice : kOptimizerNames) EXPECT_TRUE(tested.contains(choice.name)) << choice.name;
}

}  // namespace
}  // namespace lockstep::trainer

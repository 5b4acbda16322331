// training.loss dpo: the paper's formula on one device, and the same bits on meshes.
#include "trainer/step/preference_loss.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "runtime/redistribution/gather.h"
#include "tests/support/canonical_models.h"
#include "trainer/state/state_digest.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

Job dpo_job(int64_t local_batch = 2) {
  auto job = testing::canonical_job(testing::kCanonicalModels[2], 16, local_batch);
  job.lora = {.rank = 3, .alpha = 6, .targets = {"*"}};
  job.training.dataset = "preferences", job.training.loss = kPreferenceLoss, job.training.dpo_beta = 0.3;
  job.parallelism.pipeline_parallel_microbatch_size = 2;  // a pair
  return job;
}

TokenBatch batch_of(const Job& job, int64_t step) {
  return testing::batch_for(job, step, testing::kCanonicalVocabulary);
}

TrainingRun::Options options_on(const char* mesh) {
  return testing::canonical_options(mesh, testing::kCanonicalModels[2]);
}

TEST(PreferenceLoss, IsThePapersFormula) {
  const auto own = at::arange(12, at::kFloat).mul(0.37).sin().view({4, 3}).requires_grad_();
  const auto reference = at::arange(12, at::kFloat).mul(0.11).cos().view({4, 3});
  const auto wide = own.detach().to(at::kDouble).requires_grad_();
  at::Tensor expected;
  for (int64_t pair = 0; pair < 2; ++pair) {
    const auto ratio = [&](int64_t row) { return reference[row].to(at::kDouble).sum() - wide[row].sum(); };
    const auto loss = -at::log(at::sigmoid((ratio(2 * pair) - ratio(2 * pair + 1)) * 0.7));
    expected = expected.defined() ? at::stack({expected, loss}) : loss;
  }
  const auto actual = preference_losses(own, reference, 0.7);
  EXPECT_TRUE(at::allclose(actual.to(at::kDouble), expected, 1e-5, 1e-6));
  actual.sum().backward();
  expected.sum().backward();
  EXPECT_TRUE(at::allclose(own.grad().to(at::kDouble), wide.grad(), 1e-5, 1e-6));
}

/// At first no answer is likelier than it was: log 2 each. Then what is chosen is.
TEST(PreferenceLoss, BeginsWithTheLogOfTwoAndFalls) {
  const auto job = dpo_job();
  TrainingRun run(job, options_on("one device"));
  const auto batch = batch_of(job, 1);
  std::vector<double> losses;
  for (int64_t step = 1; step <= 6; ++step) losses.push_back(run.step(step, batch, 1e-2).loss);
  EXPECT_NEAR(losses[0], std::log(2.0), 1e-3);
  EXPECT_LT(losses[5], losses[0] * 0.9);
}

/// What the last stage compares with is found by a forward through all stages first, whatever the schedule does then.
TEST(PreferenceLoss, OfAPipelineIsOneDevices) {
  const auto digest = [](const char* mesh, const char* schedule) {
    auto job = dpo_job(16);
    job.parallelism.pipeline_parallel_schedule = schedule;
    auto options = options_on(mesh);
    options.keep_gradients = true;
    TrainingRun run(job, std::move(options));
    std::string text;
    for (int64_t step = 1; step <= 3; ++step) {
      const auto result = run.step(step, batch_of(job, step), 1e-2);
      int64_t pairs = 0;
      for (const auto& losses : result.token_losses) pairs += losses.numel();
      text += fmt::format("{:a} {:a} {} pairs\n", result.loss, result.gradient_norm, pairs);
    }
    return text + state_digest(run.state()).text();
  };
  const auto expected = digest("one device", "1F1B");
  for (const char* schedule : {"GPipe", "1F1B", "ZBH1", "Interleaved1F1B", "DualPipeV"})
    EXPECT_EQ(digest("pp=2", schedule), expected) << schedule;
}

class PreferenceBits : public ::testing::TestWithParam<const char*> {};

TEST_P(PreferenceBits, AreOneDevices) {
  const auto job = dpo_job();
  StepVerifier verifier(job, options_on(GetParam()));
  for (int64_t step = 1; step <= 2; ++step) {
    const auto check = verifier.check(step, batch_of(job, step), 1e-2);
    ASSERT_TRUE(check.comparison.agrees() && check.comparison.differing_bits == 0)
        << "step " << step << ": " << check.comparison.beyond[0].text();
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, PreferenceBits,
                         ::testing::Values("dp_replicate=2", "dp_shard=2", "dp_shard=4", "tp=2", "tp=3", "cp=2",
                                           "dp_shard=2,tp=2", "dp_replicate=2,dp_shard=2,tp=2", "dp_shard=2,cp=2,tp=2",
                                           "pp=2", "pp=2,dp_shard=2", "pp=2,cp=2,tp=2"));

TEST(PreferenceLoss, MicrobatchesDoNotShow) {
  std::vector<std::string> digests;
  for (const int64_t local : {2, 4, 16}) {
    const auto job = dpo_job(local);
    TrainingRun run(job, options_on("one device"));
    for (int64_t step = 1; step <= 2; ++step) run.step(step, batch_of(job, step), 1e-2);
    digests.push_back(state_digest(run.state()).text());
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0], digests[2]);
}

}  // namespace
}  // namespace lockstep::trainer

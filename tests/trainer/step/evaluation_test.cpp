#include <gtest/gtest.h>

#include "tests/support/canonical_models.h"
#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

TokenBatch batch_of(const Job& job, int64_t step) {
  return testing::batch_for(job, step, testing::kCanonicalVocabulary);
}

TrainingRun::Evaluation evaluated(const char* mesh, int64_t local_batch) {
  const auto& model = testing::kCanonicalModels[0];
  const auto job = testing::canonical_job(model, 4, local_batch);
  TrainingRun run(job, testing::canonical_options(mesh, model));
  run.step(1, batch_of(job, 1), 1e-2);
  return run.evaluate(1, batch_of(job, 2));
}

TEST(Evaluation, HasTheSameBitsOnEveryMesh) {
  const auto expected = evaluated("one device", 4);
  EXPECT_GT(expected.loss_sum, 0);
  for (const auto& [mesh, local] : {std::pair("one device", 1),
                                    {"dp_shard=2", 1},
                                    {"tp=2", 4},
                                    {"cp=2", 2},
                                    {"dp_replicate=2,dp_shard=2,tp=2", 1}}) {
    const auto actual = evaluated(mesh, local);
    EXPECT_EQ(actual.loss_sum, expected.loss_sum) << mesh;
    EXPECT_EQ(actual.tokens, expected.tokens) << mesh;
  }
}

/// Without dropout a step begins with the loss that an evaluation before it has.
TEST(Evaluation, IsTheLossOfAStepThatDropsNothing) {
  auto job = testing::small_job();
  TrainingRun::Options options;
  options.make_model = [] { return std::make_unique<models::Llama>(testing::small_llama_options()); };
  TrainingRun run(job, options);
  const auto batch = testing::batch_for(job, 1);
  const auto told = run.evaluate(0, batch);
  const auto made = run.step(1, batch, 1e-3);
  EXPECT_EQ(told.tokens, made.valid_tokens);
  EXPECT_EQ(told.loss_sum / told.tokens, made.loss);
}

TEST(Evaluation, DropsNothingAndChangesNothing) {
  const auto job = testing::small_job();
  const auto digest_after = [&](bool evaluates) {
    TrainingRun run(job, testing::small_llama_on("dp_shard=2"));
    for (int64_t step = 1; step <= 3; ++step) {
      run.step(step, testing::batch_for(job, step), 1e-3);
      if (!evaluates) continue;
      const auto first = run.evaluate(step, testing::batch_for(job, 9)).loss_sum;
      EXPECT_EQ(run.evaluate(step + 7, testing::batch_for(job, 9)).loss_sum, first) << "dropout";
    }
    return state_digest(run.state()).text();
  };
  EXPECT_EQ(digest_after(true), digest_after(false));
}

TEST(Evaluation, OfABatchWithoutLabelsIsOfNoTokens) {
  const auto job = testing::small_job();
  TrainingRun run(job, testing::small_llama_on("dp_shard=2"));
  auto batch = testing::batch_for(job, 1);
  std::fill(batch.labels.begin(), batch.labels.end(), kIgnoredLabel);
  const auto told = run.evaluate(0, batch);
  EXPECT_EQ(told.loss_sum, 0);
  EXPECT_EQ(told.tokens, 0);
}

}  // namespace
}  // namespace lockstep::trainer

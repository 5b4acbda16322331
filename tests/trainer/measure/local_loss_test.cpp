// What each rank has of a step's loss, beside the losses of the tokens that it computes.
#include "trainer/measure/local_loss.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "runtime/redistribution/gather.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

struct Step {
  StepResult result;
  at::Tensor losses, labels;  ///< [rows, length]
};

Step step_on(const char* mesh, const Job& job = testing::small_job()) {
  auto options = testing::small_llama_on(mesh);
  options.keep_gradients = true;
  TrainingRun run(job, options);
  const auto batch = testing::batch_for(job, 1);
  Step step{run.step(1, batch, 1e-3), {}, {}};
  step.losses = gather(step.result.token_losses.at(0));
  step.labels = at::tensor(batch.labels).view({batch.rows, batch.seq_len});
  return step;
}

/// `rows`, `columns`: of `step`, that the rank computes.
void expect_part(const Step& step, size_t rank, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const auto part = [&](const at::Tensor& whole) { return whole.narrow(0, row, rows).narrow(1, column, columns); };
  const auto& mine = step.result.local_losses.at(rank);
  EXPECT_NEAR(mine.sum, part(step.losses).sum(at::kDouble).item<double>(), 1e-9) << "rank " << rank;
  EXPECT_EQ(mine.tokens, at::ne(part(step.labels), kIgnoredLabel).sum().item<double>()) << "rank " << rank;
}

TEST(LocalLosses, AreOfTheTokensThatARankHas) {
  const auto step = step_on("dp_shard=2,tp=2");
  ASSERT_EQ(step.result.local_losses.size(), 4U);
  for (const size_t rank : {0U, 1U}) expect_part(step, rank, 0, 6, 0, 12);
  for (const size_t rank : {2U, 3U}) expect_part(step, rank, 6, 6, 0, 12);
}

TEST(LocalLosses, FollowASequenceThatIsCut) {
  const auto step = step_on("dp_shard=2,cp=2", testing::native_job());
  for (size_t rank = 0; rank < 4; ++rank) expect_part(step, rank, rank < 2 ? 0 : 6, 6, rank % 2 == 0 ? 0 : 6, 6);
}

/// 12 positions are one leaf of canonical sums.
TEST(LocalLosses, OfARankWithoutTokensAreNone) {
  const auto step = step_on("cp=2");
  expect_part(step, 0, 0, 12, 0, 12);
  EXPECT_EQ(step.result.local_losses[1].tokens, 0);
  EXPECT_EQ(step.result.local_losses[1].sum, 0);
}

/// Together they are the step's loss, however many microbatches there are.
TEST(LocalLosses, AddUpToTheLoss) {
  for (const int64_t local_batch : {2, 3, 6}) {
    auto job = testing::small_job();
    job.training.local_batch_size = local_batch;
    TrainingRun run(job, testing::small_llama_on("dp_shard=2"));
    const auto result = run.step(1, testing::batch_for(job, 1), 1e-3);
    double sum = 0, tokens = 0;
    for (const auto& [loss, count] : result.local_losses) sum += loss, tokens += count;
    EXPECT_EQ(tokens, result.valid_tokens);
    EXPECT_NEAR(sum / tokens, result.loss, 1e-6 * result.loss);
    EXPECT_NE(result.local_losses[0].sum, result.local_losses[1].sum);
  }
}

}  // namespace
}  // namespace lockstep::trainer

// A rank's step of a model with experts, replayed alone: rows come as they are recorded, and so does what balances.
#include <gtest/gtest.h>

#include "models/families/moe.h"
#include "replay/store/recording_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/recording/recorded_jobs.h"
#include "trainer/recording/step_recorder.h"

namespace lockstep::trainer {
namespace {

std::unique_ptr<models::Model> small_experts() {
  auto options = models::moe_flavor("debugmodel-deepseek-v3");
  options.dense.width = 24, options.dense.layers = 4, options.dense.heads = options.dense.key_value_heads = 3;
  options.dense.hidden = 36, options.dense.vocabulary = 29, options.dense.length = 12;
  options.experts.hidden = 12, options.latent = {8, 8, 4, 2, 4};
  return std::make_unique<models::Moe>(options);
}

class ExpertReplay : public ::testing::TestWithParam<testing::Setup> {};

TEST_P(ExpertReplay, OfEveryRankAloneIsIdentical) {
  const TemporaryFolder folder;
  auto job = testing::job_of(GetParam(), folder.file("traces"));
  job.model.name = "moe";
  auto options = testing::options_of(job);
  options.make_model = small_experts;
  {
    TrainingRun run(job, options);
    StepRecorder recorder(job, run);
    run.step(1, testing::batch_for(job, 1), 1e-2);
    recorder.close_step(), recorder.finish();
  }
  const replay::RecordingFolder traces(job.record.folder);
  EXPECT_GT(traces.ranks().size(), 1u);
  for (const int rank : traces.ranks()) {
    const auto recording = traces.read(rank, 1);
    const auto outcome = ReplayedRun(recording, {}, small_experts).replay(recording);
    EXPECT_TRUE(outcome.is_identical()) << "rank " << rank << "\n" << testing::text_of(outcome);
    EXPECT_EQ(outcome.ops, recording.ops.size());
    EXPECT_EQ(outcome.collectives, recording.collectives.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, ExpertReplay,
                         ::testing::Values(testing::Setup{"dp_shard=2,ep=2", "canonical", 2},
                                           testing::Setup{"pp=2,dp_shard=2,ep=2", "canonical", 2},
                                           testing::Setup{"dp_shard=4,ep=2", "native", 1},
                                           testing::Setup{"dp_shard=2,tp=2,ep=4", "canonical", 1, true},
                                           testing::Setup{"cp=2,ep=2", "native", 1, false, "bfloat16"}));

}  // namespace
}  // namespace lockstep::trainer

// A recorded step of all ranks beside one device: what is not as it was recorded is named, and whose it is.
#include "trainer/recording/recorded_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/store/recording_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/recording/recorded_jobs.h"
#include "trainer/recording/step_recorder.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class RecordedReference : public ::testing::Test {
 protected:
  RecordedReference() {
    auto job = testing::job_of({"dp_shard=2"}, folder_.file("traces"));
    job.model.width = 24, job.model.layers = 1, job.model.heads = 2, job.model.key_value_heads = 2;
    job.model.hidden = 36, job.model.vocabulary = 29;
    auto options = testing::options_of(job);
    options.make_model = {};  // what a recording says of its model is all that the comparison has
    TrainingRun run(job, options);
    StepRecorder recorder(job, run);
    run.step(1, testing::batch_for(job, 1), 1e-2);
    recorder.close_step();
    recorder.finish();
  }
  replay::RecordingFolder traces() const { return replay::RecordingFolder(folder_.file("traces")); }

  TemporaryFolder folder_;
};

TEST_F(RecordedReference, OfAStepAsItWasAgrees) {
  const auto verdict = compare_with_reference(traces(), 1);
  EXPECT_TRUE(verdict.agrees && verdict.is_as_recorded) << verdict.finding << verdict.deviation;
  EXPECT_GT(verdict.ops, 10U);
}

TEST_F(RecordedReference, NamesTheFirstNumberThatIsNotAsRecordedAndItsRank) {
  replay::RecordingWriter writer(folder_.file("edited"), 1 << 20);
  for (const int rank : {0, 1}) {
    auto recording = traces().read(rank, 1);
    for (auto& scalar : recording.scalars)
      if (rank == 1 && (scalar.name == "loss" || scalar.name == "gradient_norm")) scalar.bits ^= 1;
    writer.push(std::move(recording));
  }
  writer.finish();
  const auto verdict = compare_with_reference(replay::RecordingFolder(folder_.file("edited")), 1);
  EXPECT_TRUE(verdict.agrees) << verdict.finding;
  EXPECT_FALSE(verdict.is_as_recorded);
  EXPECT_THAT(verdict.deviation, StartsWith("rank 1\n  loss: recorded "));
  EXPECT_THAT(verdict.deviation, Not(HasSubstr("gradient_norm")));
}

}  // namespace
}  // namespace lockstep::trainer

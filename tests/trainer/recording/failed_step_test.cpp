// A step that does not come to its end is recorded as far as it came; rings and facts of recordings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "replay/format/validate.h"
#include "replay/store/recording_folder.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/recording/recorded_jobs.h"
#include "trainer/recording/machine_facts.h"
#include "trainer/recording/step_recorder.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using testing::job_of;
using testing::options_of;
using testing::text_of;

/// A peer that is gone when its part of the twelfth collective should arrive.
class Failure final : public Observer {
 public:
  void before_collective(const CollectiveEvent&) override { ++begun_; }
  void received(const CollectiveEvent&, int, int, at::Tensor&) override {
    if (begun_ == 12) fail<TransportError>("rank 1 is gone");
  }

 private:
  int begun_ = 0;
};

/// Fails in the first collective of an op.
class FailureInAnOp final : public Observer {
 public:
  void before_op(const OpEvent&) override { ++depth_; }
  void after_op(const OpEvent&, std::span<const c10::IValue>) override { --depth_; }
  void before_collective(const CollectiveEvent&) override {
    if (depth_ > 0) fail<TransportError>("rank 1 is gone");
  }

 private:
  int depth_ = 0;
};

/// Rank 0's recording of a step that the observer ends.
class FailedStep : public ::testing::Test {
 protected:
  replay::StepRecording recorded(Observer& failure) const {
    const auto job = job_of({"dp_shard=2,tp=2"}, folder_.file("traces"));
    TrainingRun run(job, options_of(job));
    StepRecorder recorder(job, run);
    const ObserverScope scope(run.world().observers(), failure);
    EXPECT_THROW(run.step(1, testing::batch_for(job, 1), 1e-2), TransportError);
    recorder.give_up("rank 1 is gone");
    return replay::RecordingFolder(job.record.folder).read(0, 1);
  }
  TemporaryFolder folder_;
};

TEST_F(FailedStep, IsRecordedAndReplayedAsFarAsItCame) {
  Failure failure;
  const auto recording = recorded(failure);
  EXPECT_FALSE(recording.complete);
  EXPECT_EQ(recording.reason, "rank 1 is gone");
  const auto outcome = ReplayedRun(recording, {}, testing::small_llama).replay(recording);
  EXPECT_TRUE(outcome.is_identical()) << text_of(outcome);
  EXPECT_THAT(outcome.stopped_by, HasSubstr("waits for bytes that were not recorded"));
  EXPECT_EQ(outcome.ops, recording.ops.size());
  EXPECT_EQ(outcome.collectives, 12u);
}

TEST_F(FailedStep, EndsTheOpThatItFailedIn) {
  FailureInAnOp failure;
  const auto recording = recorded(failure);
  ASSERT_GT(recording.ops.size(), 1u);
  for (const auto& op : recording.ops) EXPECT_GT(op.end, op.begin);
  EXPECT_GE(recording.ops.back().end, recording.ops[recording.ops.size() - 2].end);
}

/// However rarely states are recorded: what a ring holds can be replayed.
TEST(RecordedRing, BeginsWithAState) {
  const TemporaryFolder folder;
  auto job = job_of({"dp_shard=2"}, folder.file("traces"));
  job.record.payload = "ring:2", job.record.state_every = 100;
  TrainingRun run(job, options_of(job));
  StepRecorder recorder(job, run);
  for (int64_t step = 1; step <= 6; ++step) {
    run.step(step, testing::batch_for(job, step), 1e-2);
    recorder.close_step();
  }
  recorder.give_up("a test");
  const replay::RecordingFolder traces(job.record.folder);
  const auto steps = traces.steps(0);
  ASSERT_FALSE(steps.empty());
  EXPECT_GE(steps.front(), 4) << "two steps, and those since the state before them";
  EXPECT_EQ(steps.back(), 6);
  const auto first = traces.read(0, steps.front());
  EXPECT_TRUE(first.has_state);
  EXPECT_TRUE(ReplayedRun(first, {}, testing::small_llama).replay(first).is_identical());
}

TEST(MachineFacts, AStrangeEnvironmentCanBeRecorded) {
  ::setenv("LOCKSTEP_TWO_LINES", "one\ntwo", 1);
  ::setenv("LOCKSTEP_LONG", std::string(100000, 'x').c_str(), 1);
  replay::StepRecording recording;
  recording.machine = machine_facts("cpu");
  ::unsetenv("LOCKSTEP_TWO_LINES");
  ::unsetenv("LOCKSTEP_LONG");
  EXPECT_NO_THROW(replay::validate(recording));
  EXPECT_THAT(recording.machine, ::testing::Contains(std::pair("environment.LOCKSTEP_TWO_LINES", "one two")));
}

/// A recording is handed on.
TEST(MachineFacts, AJobsTokenIsNotRecorded) {
  for (const char* name : {"LOCKSTEP_JOB_TOKEN", "LOCKSTEP_JOB_TOKEN_FILE"}) {
    const std::string before = std::getenv(name) ? std::getenv(name) : "";
    ::setenv(name, "secret", 1);
    for (const auto& [key, value] : machine_facts("cpu")) {
      EXPECT_THAT(key, ::testing::Not(HasSubstr("TOKEN")));
      EXPECT_THAT(value, ::testing::Not(HasSubstr("secret")));
    }
    before.empty() ? ::unsetenv(name) : ::setenv(name, before.c_str(), 1);
  }
}

}  // namespace
}  // namespace lockstep::trainer

// What the page of a timeline says of the job and the machine that were recorded.
#include "tools/lockstep/reports/timeline_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/job/job_file.h"

namespace lockstep::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

replay::StepRecording recorded() {
  trainer::Job job;
  job.job.description = "a demo";
  job.model.name = "mlp", job.model.flavor = "debugmodel";
  job.training.steps = 60;
  job.debug.seed = 42;
  job.parallelism.data_parallel_shard_degree = 2;
  job.parallelism.tensor_parallel_degree = 3;
  replay::StepRecording recording;
  recording.job = trainer::to_toml(job);
  recording.world = 6, recording.step = 17, recording.rows = 8, recording.seq_len = 16, recording.first_sample = 128;
  recording.machine = {{"numerics_version", "1"}, {"processor", "an EPYC"}, {"device", "cpu"}, {"mxcsr", "0x1f80"}};
  return recording;
}

TEST(TimelineFacts, AreOfTheJobAndTheMachine) {
  const auto head = timeline_head(recorded());
  EXPECT_EQ(head.title, "a demo");
  EXPECT_THAT(head.facts, ElementsAre(Pair("job", "a demo"), Pair("model", "mlp debugmodel"),
                                      Pair("mesh", "dp_shard=2,tp=3, 6 ranks"), Pair("step", "17 of 60"),
                                      Pair("batch", "8 x 16 tokens, float32, from sample 128 on"), Pair("seed", "42"),
                                      Pair("numerics", "canonical, numerics version 1"),
                                      Pair("machine", "device: cpu; processor: an EPYC")));
}

TEST(TimelineFacts, SayWhyAJobCannotBeRead) {
  auto recording = recorded();
  recording.job = "[training\n";
  const auto head = timeline_head(recording);
  EXPECT_EQ(head.title, "");
  EXPECT_THAT(head.facts, ElementsAre(Pair("job", HasSubstr("cannot be read: the recorded job")),
                                      Pair("machine", HasSubstr("cpu"))));
}

}  // namespace
}  // namespace lockstep::tool

// Traces of a run: which steps have one, what is in it, and that the run stays what it is.
#include "trainer/profile/step_profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/support/temporary_folder.h"
#include "trainer/job/batching.h"
#include "trainer/loop/train_loop.h"

namespace lockstep::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class StepProfilers : public ::testing::Test {
 protected:
  Job job() const {
    Job job;
    job.job.dump_folder = folder_.file("out");
    job.model.name = "mlp";
    job.training.dataset_path = {text_};
    job.training.seq_len = 16;
    job.training.local_batch_size = 4;
    job.training.global_batch_size = 8;
    job.training.steps = 5;
    job.parallelism.data_parallel_shard_degree = 2;
    job.profiling = {.enable_profiling = true, .save_traces_folder = "traces", .profile_freq = 2};
    return resolve(job, {});
  }
  TrainOutcome train_noting(const Job& job) {
    TrainEvents events;
    events.on_note = [&](const std::string& note) { notes_.push_back(note); };
    return train(job, events);
  }
  std::string trace(int step, int rank) const {
    return folder_.file(fmt::format("out/traces/iteration_{}/rank{}_trace.json", step, rank));
  }

  TemporaryFolder folder_;
  std::string text_ = folder_.write("text.txt", std::string(4000, 'a') + "the cat sat on the mat");
  std::vector<std::string> notes_;
};

TEST_F(StepProfilers, TraceEveryNthStepOfEachRank) {
  train_noting(job());
  for (int step = 1; step <= 5; ++step)
    for (int rank = 0; rank < 2; ++rank)
      EXPECT_EQ(std::filesystem::exists(trace(step, rank)), step % 2 == 0) << trace(step, rank);
  const auto line = [](int step) {
    return MatchesRegex(
        fmt::format("profiled  step {}: slowest ranks 0, 1: [0-9.]+ ms of its own; slowest op "
                    "[a-zA-Z0-9_.:]+: [0-9.]+ [mu]s in [0-9]+ calls? on ranks 0, 1; .*/traces/iteration_{}",
                    step, step));
  };
  EXPECT_THAT(notes_, ElementsAre(line(2), line(4)));
}

TEST_F(StepProfilers, TracesHaveOpsAndCollectives) {
  train_noting(job());
  const auto events = nlohmann::json::parse(file_content(trace(4, 1))).at("traceEvents");
  size_t linears = 0, collectives = 0;
  for (const auto& event : events) {
    EXPECT_EQ(event.at("pid"), 1);
    if (event.at("ph") != "X") continue;
    EXPECT_GE(event.at("dur").get<double>(), 0);
    const auto id = event.at("args").at("id").get<std::string>();
    EXPECT_THAT(id, HasSubstr("microbatch 0, "));
    linears += event.at("name") == "linear";
    collectives += event.at("args").contains("received_bytes");
  }
  EXPECT_GE(linears, 5U) << "up and down of two layers, and the output";
  EXPECT_GE(collectives, 1U);
}

TEST_F(StepProfilers, ChangeNoBit) {
  const auto traced = train_noting(job());
  auto plain = job();
  plain.profiling.enable_profiling = false;
  EXPECT_EQ(train_noting(plain).state_digest, traced.state_digest);
  EXPECT_EQ(notes_.size(), 2U);
}

TEST_F(StepProfilers, AFolderThatCannotBeMadeEndsTheRun) {
  auto full = job();
  folder_.write("file", "");
  full.profiling.save_traces_folder = "../file";
  EXPECT_THROW(train_noting(full), FileError);
}

}  // namespace
}  // namespace lockstep::trainer

#include "trainer/loop/run_checkpoints.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/job/job_file.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;

class Checkpointing : public ::testing::Test {
 protected:
  Checkpointing() {
    job_.job.dump_folder = folder_.file("out");
    job_.checkpoint.enable = true;
    job_.checkpoint.interval = 1;
    job_.parallelism.data_parallel_replicate_degree = 2;
    job_.parallelism.data_parallel_shard_degree = 1;
    TrainingRun::Options options;
    options.mesh = parse_mesh("dp_replicate=2");
    options.make_model = testing::small_llama;
    run_ = std::make_unique<TrainingRun>(job_, options);
  }
  std::string message_of_save(RunCheckpoints& checkpoints, int64_t step, int64_t verified) {
    try {
      checkpoints.save(step, step, verified);
      return "saved";
    } catch (const Inconsistency& error) {
      return error.what();
    }
  }
  std::string folder_of(int64_t step) const { return folder_.file("out/checkpoint/step-" + std::to_string(step)); }

  TemporaryFolder folder_;
  Job job_ = testing::small_job();
  std::unique_ptr<TrainingRun> run_;
  Processes processes_;
};

TEST_F(Checkpointing, SavesNoCopiesThatDiffer) {
  const at::NoGradGuard no_grad;
  RunCheckpoints checkpoints(job_, processes_, *run_);
  checkpoints.save(1, 1, 0);
  sharded(run_->state()[0].value).shards()->whole()[1].view({-1}).narrow(0, 3, 1).add_(1);
  const auto message = message_of_save(checkpoints, 2, 0);
  EXPECT_THAT(message, ::testing::StartsWith("step 2: copies of "));
  EXPECT_THAT(message, ::testing::EndsWith(
                           "on rank 1: one element). A copy has drifted: the state is not saved. Resume from " +
                           folder_of(1) + " (--checkpoint.load_step 1): the last checkpoint; no step was verified"));
  EXPECT_FALSE(std::filesystem::exists(folder_of(2)));
}

TEST_F(Checkpointing, TheWayBackIsTheLastCheckpointUpToTheLastVerifiedStep) {
  job_.verify.enable = true;
  RunCheckpoints checkpoints(job_, processes_, *run_);
  EXPECT_EQ(checkpoints.way_back(0), "from the start: there is no checkpoint of this run");
  for (const int64_t step : {4, 8}) checkpoints.save(step, step, step);
  EXPECT_THAT(checkpoints.way_back(9), HasSubstr("from " + folder_of(8) + " (--checkpoint.load_step 8): the last "));
  EXPECT_THAT(checkpoints.way_back(8), HasSubstr(folder_of(8)));
  EXPECT_EQ(checkpoints.way_back(7), "from " + folder_of(4) +
                                         " (--checkpoint.load_step 4): the last checkpoint up to step 7, which was "
                                         "verified last");
  EXPECT_EQ(checkpoints.way_back(3),
            "from the start: no checkpoint is up to the last verified step. The last one is " + folder_of(8));
}

/// The same job in another build, whose schedule is another.
TEST_F(Checkpointing, AnotherNextLearningRateIsRefused) {
  { RunCheckpoints(job_, processes_, *run_).save(1, 1, 0); }
  const auto path = folder_of(1) + "/index.json";
  auto index = parse_index(file_content(path), path);
  index.metadata.learning_rate = "0x1p-3";
  std::ofstream(path) << index_text(index);
  RunCheckpoints checkpoints(job_, processes_, *run_);
  try {
    checkpoints.load([](const std::string&) {});
    ADD_FAILURE() << "was loaded";
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("would go on with a learning rate of 0x1p-3, this one with 0x"));
  }
}

/// What two readers would both begin with.
TEST_F(Checkpointing, ANextSampleThatItsStepsDoNotComeToIsRefused) {
  { RunCheckpoints(job_, processes_, *run_).save(1, 13, 0); }
  RunCheckpoints checkpoints(job_, processes_, *run_);
  try {
    checkpoints.load([](const std::string&) {});
    ADD_FAILURE() << "was loaded";
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("says that sample 13 comes next; 1 steps of 12 samples come to 12"));
  }
}

TEST_F(Checkpointing, TheRightNextSampleIsTaken) {
  { RunCheckpoints(job_, processes_, *run_).save(1, 12, 0); }
  RunCheckpoints checkpoints(job_, processes_, *run_);
  EXPECT_EQ(checkpoints.load([](const std::string&) {})->sample, 12);
}

}  // namespace
}  // namespace lockstep::trainer

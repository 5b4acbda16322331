#include "trainer/loop/run_verification.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "core/files/atomic_file.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::trainer {
namespace {

/// Native numerics: a run's own state is what its references go on from, so that a write to it between two steps shows
/// by its bits alone.
class NativeVerification : public ::testing::Test {
 protected:
  static Job job_in(const TemporaryFolder& folder) {
    Job job;
    const auto text = folder.file("text.txt");
    write_file_atomically(text, std::string(4000, 'a') + std::string(4000, 'b'));
    job.job.dump_folder = folder.file("out");
    job.model.name = "mlp";
    job.model.width = 16, job.model.layers = 1, job.model.hidden = 32;
    job.training.dataset_path = {text};
    job.training.seq_len = 8;
    job.training.local_batch_size = 2;
    job.training.steps = 3;
    job.parallelism.data_parallel_replicate_degree = 2;
    job.numerics.mode = "native";
    job.verify.enable = true;
    return resolve(job, {});
  }

  StepCheck check(int64_t step) {
    const auto batch = data_->batch((step - 1) * job_.training.global_batch_size, job_.training.global_batch_size);
    const double rate = LearningRateSchedule(job_).learning_rate(step);
    return verification_.check(step, batch, rate, [&] { return RunVerification::Made{run_.step(step, batch, rate)}; })
        .check;
  }
  void write() {
    const at::NoGradGuard no_grad;
    sharded(run_.state()[1].slots[1].tensor).shards()->whole()[1].view({-1}).narrow(0, 2, 1).add_(1e-3);
  }
  std::string written(int64_t step) const {
    return "optimizer.square." + run_.state()[1].name + " on rank 1 was written after step " + std::to_string(step);
  }

  TemporaryFolder folder_;
  Job job_ = job_in(folder_);
  Processes processes_;
  TrainingRun run_{job_, run_options(job_, processes_)};
  RunCheckpoints checkpoints_{job_, processes_, run_};
  RunVerification verification_{job_, processes_, run_};
  std::shared_ptr<Dataset> data_ = make_dataset(job_, run_.model().vocabulary());
};

TEST_F(NativeVerification, AWriteBetweenTwoStepsShows) {
  verification_.begin(1, 0, false, checkpoints_);
  EXPECT_EQ(check(1).difference, "");
  EXPECT_EQ(check(2).difference, "");
  EXPECT_TRUE(verification_.check_left(2).agrees());
  write();
  EXPECT_EQ(verification_.check_left(2).difference, written(2));
  const auto found = check(3);
  EXPECT_EQ(found.difference, written(2));
  ASSERT_TRUE(found.blame);
  EXPECT_EQ(found.blame->kind, "start");
}

/// Nobody knows what a step that was not checked has left.
TEST_F(NativeVerification, AStepThatWasNotCheckedLeavesNothingToCompare) {
  verification_.begin(1, 0, false, checkpoints_);
  EXPECT_EQ(check(1).difference, "");
  run_.step(2, data_->batch(4, 4), 1e-3);
  EXPECT_EQ(check(3).difference, "");
}

}  // namespace
}  // namespace lockstep::trainer

// The run that trains under native numerics, as a whole: what its roundings may do, and no more.
#include "trainer/verify/native_run_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/compared_run.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

using testing::Compared;
using ::testing::HasSubstr;
using testing::native_job;
using testing::WrongMoves;

class NativeRunOn : public ::testing::TestWithParam<const char*> {};

TEST_P(NativeRunOn, IsWithinWhatItsRoundingsMayDo) {
  auto job = native_job();
  for (const char* dtype : {"float32", "bfloat16"})
    for (const int64_t local : {12, 2}) {
      job.training.mixed_precision_param = dtype;
      job.training.local_batch_size = local;
      Compared compared(GetParam(), job);
      for (int64_t step = 1; step <= 2; ++step) {
        const auto check = compared.step(step);
        EXPECT_TRUE(check.agrees()) << dtype << ": " << check.difference;
        EXPECT_GT(check.run_over_bound, 0) << "nothing was compared";
        EXPECT_LT(check.run_over_bound, 0.5) << dtype;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Meshes, NativeRunOn,
                         ::testing::Values("one device", "dp_replicate=2", "dp_shard=3", "tp=2", "tp=3", "cp=2",
                                           "dp_shard=2,tp=2", "dp_replicate=2,dp_shard=2,tp=3", "pp=2",
                                           "pp=3,dp_shard=2,tp=2"));

TEST(NativeRun, AWrongMoveIsBlamedOnIt) {
  for (const char* op : {"gather_parameters", "reduce_gradients"}) {
    Compared compared("dp_shard=3");
    WrongMoves wrong(op, 1.01);
    const ObserverScope scope(compared.run().world().observers(), wrong);
    const auto check = compared.step(1);
    EXPECT_GT(wrong.spoiled, 0);
    EXPECT_THAT(check.difference, HasSubstr(" times what rounding may do; ")) << op;
    ASSERT_TRUE(check.blame) << op;
    EXPECT_EQ(check.blame->kind, "collective");
    EXPECT_EQ(check.blame->op, op);
  }
}

/// Replicas that share the update out: it agrees, and of what they give each other all is compared, whatever is
/// sampled.
TEST(NativeRun, UpdatesThatReplicasShareAreCompared) {
  auto job = native_job();
  job.parallelism.shard_optimizer_state = true;
  Compared right("dp_replicate=3", job);
  for (int64_t step = 1; step <= 2; ++step) EXPECT_EQ(right.step(step).difference, "");
  for (const char* op : {"share_update", "gather_updated"}) {
    TrainingRun run(job, testing::small_llama_on("dp_replicate=3"));
    OpVerifier ops(run, /*sample=*/1'000'000, OpCheck::Updates::kAll);
    WrongMoves wrong(op, 1.01);
    {
      const ObserverScope scope(run.world().observers(), wrong);
      const OpVerifier::Watch watch(ops);
      run.step(1, testing::batch_for(job, 1), 1e-2);
    }
    StepCheck check;
    ops.judge(check);
    EXPECT_GT(wrong.spoiled, 0);
    ASSERT_TRUE(check.blame) << op;
    EXPECT_EQ(check.blame->op, op);
  }
}

/// Writes to the part of the first parameter that a replica has taken, before it is updated or after.
class WrongPart final : public Observer {
 public:
  explicit WrongPart(bool after) : after_(after) {}
  void after_move(const MoveEvent& event) override {
    if (event.id.op != "share_update" || part_.defined()) return;
    part_ = event.shards_after[1], name_ = event.id.module;
  }
  void before_op(const OpEvent& event) override {
    if (event.id.phase != Phase::kOptimizer || !part_.defined() || (event.id.module == name_) == after_) return;
    const PlainTensors guard;
    const at::NoGradGuard no_grad;
    if (!std::exchange(is_done_, true)) part_.mul_(1.01);
  }

 private:
  bool after_, is_done_ = false;
  at::Tensor part_;
  std::string name_;
};

TEST(NativeRun, AWriteToAPartOfAnUpdateIsNoticed) {
  auto job = native_job();
  job.parallelism.shard_optimizer_state = true;
  for (const bool after : {false, true}) {
    TrainingRun run(job, testing::small_llama_on("dp_replicate=3"));
    OpVerifier ops(run, /*sample=*/1'000'000, OpCheck::Updates::kAll);
    WrongPart wrong(after);
    {
      const ObserverScope scope(run.world().observers(), wrong);
      const OpVerifier::Watch watch(ops);
      run.step(1, testing::batch_for(job, 1), 1e-2);
    }
    EXPECT_EQ(ops.take_write(), "the part of tok_embeddings.weight that a replica updates") << after;
  }
}

/// What a microbatch gives a parameter, on one rank.
class WrongGradient final : public StepListener {
 public:
  void begin_step(int64_t, const TokenBatch&, double, const TrainingState&) override {}
  void end_step(std::span<const StepScalar>) override {}
  void take_gradient(int64_t, const std::string& parameter, at::Tensor& gradient) override {
    if (parameter != "layers.1.attention.wo.weight") return;
    const PlainTensors guard;
    const at::NoGradGuard no_grad;
    sharded(gradient).shards()->local_tensors()[1].mul_(1.02);
  }
};

/// No op is wrong: what is says so, and how far it is beyond.
TEST(NativeRun, AGradientThatNoOpMadeIsNoticed) {
  Compared compared("tp=2");
  WrongGradient wrong;
  compared.run().set_listener(&wrong);
  const auto check = compared.step(1);
  compared.run().set_listener(nullptr);
  EXPECT_THAT(check.difference, HasSubstr("gradient of layers.1.attention.wo.weight["));
  EXPECT_THAT(check.difference, HasSubstr(", on rank 1"));
  ASSERT_TRUE(check.blame);
  EXPECT_EQ(check.blame->kind, "step");
  EXPECT_THAT(check.blame->before, HasSubstr("compared with one device each, agree"));
}

/// A run whose own state is written before its step goes on from it, as its references do; one in the middle of it does
/// not.
TEST(NativeRun, AWrongUpdateIsNoticed) {
  Compared compared("dp_replicate=2");
  int written = 0;
  compared.run().on_update([&](const ParameterState& entry) {
    const at::NoGradGuard no_grad;
    const PlainTensors guard;
    if (entry.name == "layers.1.attention.wo.weight")
      sharded(entry.slots[0].tensor).shards()->whole()[1].mul_(1.05), ++written;
  });
  const auto check = compared.step(1);
  EXPECT_EQ(written, 2) << "in the step, and when it was made again";
  EXPECT_THAT(check.difference, HasSubstr("optimizer state of mean of layers.1.attention.wo.weight["));
  EXPECT_THAT(check.difference, HasSubstr(", on rank 1"));
}

/// All ranks alike, and far less than roundings of a step come to.
TEST(NativeRun, AWriteThatIsNoUpdateIsNoticed) {
  for (const bool of_value : {true, false}) {
    Compared compared("dp_replicate=2");
    compared.run().on_update([&](const ParameterState& entry) {
      const at::NoGradGuard no_grad;
      const PlainTensors guard;
      if (entry.name != "layers.1.attention.wo.weight") return;
      for (const auto& shard : sharded(of_value ? entry.value : entry.slots[0].tensor).shards()->whole())
        at::Tensor(shard).mul_(1 + 1e-6);
    });
    const auto check = compared.step(1);
    EXPECT_EQ(check.difference, std::string(of_value ? "" : "optimizer.mean.") +
                                    "layers.1.attention.wo.weight on rank 0 was written in the step by something else "
                                    "than its update");
    ASSERT_TRUE(check.blame);
    EXPECT_EQ(check.blame->id, "none: what step 1 gave as a whole");
    EXPECT_FALSE(check.blame->transient);
  }
}

/// Right ops, one too many: what each gives, it gives on one device as well.
TEST(NativeRun, AnUpdateTooManyIsNoticed) {
  Compared compared("dp_shard=3");
  compared.run().on_update([&](const ParameterState& entry) {
    const at::NoGradGuard no_grad;
    if (entry.name == "layers.1.attention.wo.weight") at::Tensor(entry.value).mul_(1.0);
  });
  const auto check = compared.step(1);
  EXPECT_EQ(check.difference,
            "times that the update ran of layers.1.attention.wo.weight, mul_.Scalar #0 = 1, one device: 0 (relative "
            "inf; 1 of 1 elements wrong)");
  ASSERT_TRUE(check.blame);
  EXPECT_FALSE(check.blame->transient);
}

/// What is wrong once alone is said to be.
TEST(NativeRun, WhatDoesNotComeBackIsTransient) {
  Compared compared("dp_shard=3");
  bool is_written = false;
  compared.run().on_update([&](const ParameterState& entry) {
    const at::NoGradGuard no_grad;
    const PlainTensors guard;
    if (is_written || entry.name != "layers.1.attention.wo.weight") return;
    sharded(entry.slots[0].tensor).shards()->whole()[1].mul_(1.05), is_written = true;
  });
  const auto check = compared.step(1);
  EXPECT_FALSE(check.difference.empty());
  ASSERT_TRUE(check.blame);
  EXPECT_TRUE(check.blame->transient);
}

}  // namespace
}  // namespace lockstep::trainer

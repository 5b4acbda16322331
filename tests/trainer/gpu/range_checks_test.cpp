// Tokens and labels on a GPU that are none are an error before anything follows from them, though no op waits to see.
#include "runtime/deferred/range_checks.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/error.h"
#include "rng/cuda_fill.h"
#include "runtime/context/world.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/message_of.h"
#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kToken = "token 29 is outside of the vocabulary of 29 entries";
constexpr const char* kLabel = "cross-entropy: label -3 is none of the 29 classes, and not the ignored label -100";

class GpuRangeChecks : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
      GTEST_SKIP() << "NOT CHECKED: checks of what lies on a GPU (" << reason << ")";
    options_.mesh = parse_mesh(GetParam());
    options_.make_model = testing::small_llama;
    job_.training.device = "cuda";
    job_.training.local_batch_size = 2;
  }

  Job job_ = testing::native_job();
  TrainingRun::Options options_;
};

TEST_P(GpuRangeChecks, EndAStepBeforeTheUpdateAndTheNextOneIsRight) {
  TrainingRun run(job_, options_), other(job_, options_);
  const auto before = state_digest(run.state());
  auto batch = testing::batch_for(job_, 1);
  batch.tokens[40] = 29;
  EXPECT_EQ(testing::message_of<BadInput>([&] { run.step(1, batch, 1e-2); }), kToken);
  EXPECT_EQ(state_digest(run.state()), before);
  batch = testing::batch_for(job_, 1);
  batch.labels[75] = -3;
  EXPECT_EQ(testing::message_of<BadInput>([&] { run.step(1, batch, 1e-2); }), kLabel);
  EXPECT_EQ(state_digest(run.state()), before);
  batch = testing::batch_for(job_, 1);
  EXPECT_EQ(run.step(1, batch, 1e-2).loss, other.step(1, batch, 1e-2).loss);
  EXPECT_EQ(state_digest(run.state()), state_digest(other.state()));
}

INSTANTIATE_TEST_SUITE_P(Meshes, GpuRangeChecks, ::testing::Values("one device", "dp_shard=2,tp=3", "pp=2"));

/// A pipeline runs whole steps alone.
using GpuRangeChecksOfParts = GpuRangeChecks;
INSTANTIATE_TEST_SUITE_P(Meshes, GpuRangeChecksOfParts, ::testing::Values("one device", "dp_shard=2,tp=3"));

/// A step that was begun with a wrong token, and given up for another reason.
TEST_P(GpuRangeChecksOfParts, OfWorkThatWasGivenUpAreForgotten) {
  TrainingRun run(job_, options_);
  auto batch = testing::batch_for(job_, 1);
  batch.tokens[0] = -1;
  run.begin_step(1, batch, 1e-2);
  run.accumulate(0, run.forward_loss(0));
  EXPECT_GT(run.step(1, testing::batch_for(job_, 1), 1e-2).loss, 0);
}

using GpuRangeChecksOfOps = GpuRangeChecks;
INSTANTIATE_TEST_SUITE_P(Meshes, GpuRangeChecksOfOps, ::testing::Values("one device"));

TEST_P(GpuRangeChecksOfOps, AreSettledByWhoReadsAndByTheirNumber) {
  World world({.rank_count = 2, .device = c10::kCUDA});
  const auto& mesh = world.mesh("tp=2");
  const Layout whole(mesh, {Placement::replicate()}), rows(mesh, {Placement::shard(0)});
  const auto values = at::arange(10, at::kFloat).view({5, 2});
  for (const auto& layout : {whole, rows}) {
    const auto table = distribute(values, layout);
    const auto right = at::embedding(table, distribute(at::tensor({0, 4, 2}), whole));
    EXPECT_TRUE(at::equal(gather(right), values.index_select(0, at::tensor({0, 4, 2}))));
    const auto wrong = at::embedding(table, distribute(at::tensor({0, 5, 2}, at::kInt), whole));
    const char* message = "token 5 is outside of the vocabulary of 5 entries";
    EXPECT_EQ(testing::message_of<BadInput>([&] { gather(right); }), message) << "of whatever";
    EXPECT_TRUE(at::equal(gather(wrong)[0], values[0])) << "told once";
    int calls = 0;
    EXPECT_EQ(testing::message_of<BadInput>([&] {
                for (; calls < 2000; ++calls) at::embedding(table, distribute(at::tensor({5}), whole));
              }),
              message);
    EXPECT_LT(calls, 1100);
    world.part<RangeChecks>().forget();
  }
  const auto none = distribute(at::empty({0, 2}), whole);
  EXPECT_EQ(testing::message_of<BadInput>([&] { at::embedding(none, distribute(at::tensor({0}), whole)); }),
            "token 0 is outside of the vocabulary of 0 entries")
      << "there is no row that could be read instead";
}

/// Whose loss is differentiated twice: the label is read by an op of LibTorch's, too.
TEST_P(GpuRangeChecksOfOps, OfLabelsEndSecondDerivatives) {
  World world({.rank_count = 1, .device = c10::kCUDA});
  const auto& mesh = world.mesh("dp=1");
  const auto logits = distribute(at::arange(8, at::kFloat).view({2, 4}), Layout::replicated(mesh)).requires_grad_();
  const auto labels = distribute(at::tensor({1, 4}, at::kLong), Layout::replicated(mesh));
  const auto loss = at::sum(mesh_ops::token_losses(logits, labels, -100, c10::kFloat));
  const auto slope = torch::autograd::grad({loss}, {logits}, {}, std::nullopt, /*create_graph=*/true)[0];
  const auto twice = torch::autograd::grad({at::sum(at::mul(slope, slope))}, {logits})[0];
  EXPECT_EQ(testing::message_of<BadInput>([&] { gather(twice); }),
            "cross-entropy: label 4 is none of the 4 classes, and not the ignored label -100");
}

}  // namespace
}  // namespace lockstep::trainer

// A step's parts in other orders than step() has them, as schedules of pipelines do: the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "core/error.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

constexpr double kRate = 1e-2;
constexpr int64_t kMicrobatches = 4;

/// Eight sequences in microbatches of two samples; dropout, and every block recomputed.
Job parts_job(const char* mode, const MeshDegrees& mesh) {
  auto job = testing::small_job();
  job.numerics.mode = mode;
  job.training.global_batch_size = 8;
  job.training.local_batch_size = 8 / mesh.data_parallel() / kMicrobatches;
  job.activation_checkpoint.mode = "full";
  return job;
}

TrainingRun run_on(const char* mesh, const char* mode = "canonical") {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = testing::small_llama;
  return {parts_job(mode, options.mesh), options};
}

TokenBatch batch_of(int64_t step) { return testing::batch_for(parts_job("canonical", {}), step); }

struct Outcome {
  uint64_t loss, norm;  ///< bits of doubles
  std::string state;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(const TrainingRun& run, const StepResult& result) {
  return {std::bit_cast<uint64_t>(result.loss), std::bit_cast<uint64_t>(result.gradient_norm),
          state_digest(run.state()).text()};
}

Outcome whole_steps(TrainingRun run) {
  run.step(1, batch_of(1), kRate);
  const auto result = run.step(2, batch_of(2), kRate);
  return outcome_of(run, result);
}

/// Two steps whose microbatches come in `order`, with so many forwards ahead of the first backward.
Outcome steps_in_order(TrainingRun run, const std::vector<int64_t>& order, size_t ahead) {
  StepResult result;
  for (int64_t step = 1; step <= 2; ++step) {
    const auto batch = batch_of(step);
    run.begin_step(step, batch, kRate);
    std::vector<at::Tensor> losses(order.size());
    for (size_t i = 0; i < order.size() + ahead; ++i) {
      if (i < order.size()) losses[i] = run.forward_loss(order[i]);
      if (i >= ahead) run.accumulate(order[i - ahead], std::exchange(losses[i - ahead], {}));
    }
    result = run.apply();
  }
  return outcome_of(run, result);
}

class StepParts : public ::testing::TestWithParam<const char*> {};

TEST_P(StepParts, AnyOrderOfMicrobatchesHasTheSameBits) {
  const auto expected = whole_steps(run_on(GetParam()));
  std::vector<int64_t> order(kMicrobatches);
  std::iota(order.begin(), order.end(), 0);
  EXPECT_EQ(steps_in_order(run_on(GetParam()), order, 0), expected);
  EXPECT_EQ(steps_in_order(run_on(GetParam()), order, 1), expected) << "one forward ahead";
  EXPECT_EQ(steps_in_order(run_on(GetParam()), order, order.size() - 1), expected) << "all forwards first";
  EXPECT_EQ(steps_in_order(run_on(GetParam()), {2, 0, 3, 1}, 1), expected) << "another order of microbatches";
  EXPECT_EQ(steps_in_order(run_on(GetParam()), {3, 2, 1, 0}, 3), expected) << "backwards";
}

INSTANTIATE_TEST_SUITE_P(Meshes, StepParts,
                         ::testing::Values("one device", "dp_shard=2,tp=3", "dp_replicate=2", "cp=2"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           for (auto& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST(StepParts, NativeGradientsAreAddedInTheOrderOfAccumulation) {
  const auto expected = whole_steps(run_on("dp_shard=2", "native"));
  EXPECT_EQ(steps_in_order(run_on("dp_shard=2", "native"), {0, 1, 2, 3}, 3), expected);
}

/// Frozen parameters and microbatches that never came must not be taken for a finished step.
TEST(StepParts, AnUnfinishedStepIsRefusedAndCanBeBegunAgain) {
  const auto expected = whole_steps(run_on("dp_shard=2"));
  auto run = run_on("dp_shard=2");
  const auto first = batch_of(1), second = batch_of(2);
  EXPECT_THROW(run.forward_loss(0), InternalError);
  run.begin_step(1, first, kRate);
  EXPECT_THROW(run.forward_loss(kMicrobatches), InternalError);
  const auto losses = run.forward_loss(0);
  run.accumulate(0, losses);
  EXPECT_THROW(run.accumulate(0, run.forward_loss(0)), InternalError) << "twice";
  EXPECT_THROW(run.apply(), InternalError) << "three microbatches are missing";
  run.step(1, first, kRate);
  const auto result = run.step(2, second, kRate);
  EXPECT_EQ(outcome_of(run, result), expected);
}

}  // namespace
}  // namespace lockstep::trainer

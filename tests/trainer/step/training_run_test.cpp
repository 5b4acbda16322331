#include "trainer/step/training_run.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

using testing::batch_for;
using testing::small_job;
using testing::small_llama;

struct Trace {
  std::vector<double> losses, norms;
  std::vector<at::Tensor> gradients, parameters;
};

Trace train(const Job& job, const char* mesh, int64_t steps = 3, int64_t local_batch = 12) {
  auto local_job = job;
  local_job.training.local_batch_size = local_batch;
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.domain = Domain::kFloat64;
  options.keep_gradients = true;
  options.make_model = small_llama;
  TrainingRun run(local_job, options);
  Trace trace;
  for (int64_t step = 1; step <= steps; ++step) {
    auto result = run.step(step, batch_for(job, step), 1e-2);
    trace.losses.push_back(result.loss);
    trace.norms.push_back(result.gradient_norm);
    for (const auto& gradient : result.gradients) trace.gradients.push_back(gather(gradient));
  }
  for (const auto& entry : run.state()) trace.parameters.push_back(gather(entry.value));
  return trace;
}

double worst(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double result = 0;
  for (size_t i = 0; i < a.size(); ++i)
    result =
        std::max(result, (a[i] - b[i]).abs().max().item<double>() / std::max(1e-30, b[i].abs().max().item<double>()));
  return result;
}

class EveryMesh : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryMesh, TrainsLikeOneDevice) {
  const auto job = small_job();
  static const auto expected = train(job, "one device");
  const auto actual = train(job, GetParam());
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_NEAR(actual.losses[i], expected.losses[i], 1e-12 * expected.losses[i]);
    EXPECT_NEAR(actual.norms[i], expected.norms[i], 1e-11 * expected.norms[i]);
  }
  EXPECT_LT(worst(actual.gradients, expected.gradients), 1e-9);
  EXPECT_LT(worst(actual.parameters, expected.parameters), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Meshes, EveryMesh,
                         ::testing::Values("dp_replicate=2", "dp_shard=2", "dp_shard=3", "tp=2", "tp=3", "tp=5",
                                           "dp_shard=2,tp=2", "dp_replicate=2,dp_shard=3",
                                           "dp_replicate=2,dp_shard=2,tp=3", "dp_shard=4,tp=3", "cp=2", "cp=3",
                                           "dp_shard=2,cp=2,tp=2", "dp_replicate=2,dp_shard=2,cp=2,tp=2"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           for (auto& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST(TrainingRun, DoesNotDependOnMicrobatches) {
  const auto job = small_job();
  const auto expected = train(job, "one device");
  const auto actual = train(job, "dp_shard=2", 3, 3);  // two microbatches of six rows
  EXPECT_LT(worst(actual.gradients, expected.gradients), 1e-9);
  EXPECT_LT(worst(actual.parameters, expected.parameters), 1e-9);
}

TEST(TrainingRun, DoesNotDependOnRecomputation) {
  auto job = small_job();
  const auto expected = train(job, "dp_shard=2,tp=2");
  job.activation_checkpoint.mode = "full";
  const auto actual = train(job, "dp_shard=2,tp=2");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(actual.losses[i] - expected.losses[i], 0) << i;
  for (size_t i = 0; i < expected.parameters.size(); ++i)
    EXPECT_TRUE(at::equal(actual.parameters[i], expected.parameters[i])) << i;
}

}  // namespace
}  // namespace lockstep::trainer

#include "trainer/training_run.h"

#include <gtest/gtest.h>

#include "models/llama.h"
#include "models/mlp.h"
#include "runtime/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

Job small_job() {
  Job job;
  job.training.seq_len = 12;
  job.training.local_batch_size = 12;
  job.training.global_batch_size = 12;
  job.parallelism.data_parallel_shard_degree = 1;
  job.debug.seed = 7;
  return job;
}

/// A Llama with grouped heads, small enough that a step takes milliseconds.
std::unique_ptr<models::Model> small_llama() {
  models::LlamaOptions options;
  options.width = 24;
  options.layers = 2;
  options.heads = 6;
  options.key_value_heads = 3;
  options.hidden = 36;
  options.vocabulary = 29;
  options.length = 12;
  options.dropout = 0.1;
  return std::make_unique<models::Llama>(options);
}

TokenBatch batch_for(const Job& job, int64_t step, int64_t vocabulary = 29) {
  TokenBatch batch{job.training.global_batch_size, job.training.seq_len, {}, {}};
  for (int64_t i = 0; i < batch.rows * batch.seq_len; ++i) {
    batch.tokens.push_back((i * 7 + step * 3) % vocabulary);
    batch.labels.push_back(i % 5 == 0 ? kIgnoredLabel : (i * 11 + step) % vocabulary);
  }
  return batch;
}

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
    result = std::max(result, (a[i] - b[i]).abs().max().item<double>() / std::max(1e-30, b[i].abs().max().item<double>()));
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
                                           "dp_shard=2,tp=2", "dp_replicate=2,dp_shard=3", "dp_replicate=2,dp_shard=2,tp=3",
                                           "dp_shard=4,tp=3"),
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
  EXPECT_EQ(actual.losses, expected.losses);
  for (size_t i = 0; i < expected.parameters.size(); ++i)
    EXPECT_TRUE(at::equal(actual.parameters[i], expected.parameters[i])) << i;
}

}  // namespace
}  // namespace lockstep::trainer

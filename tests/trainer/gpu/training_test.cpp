// A GPU trains as a CPU does, but for rounding; skipped, with the reason, where there is none.
#include <gtest/gtest.h>

#include "core/error.h"
#include "rng/cuda_fill.h"
#include "tests/support/small_models.h"
#include "trainer/measure/step_meter.h"

namespace lockstep::trainer {
namespace {

struct Outcome {
  std::vector<double> losses, norms;
};

Outcome train_on(const char* device, const char* mesh) {
  auto job = testing::native_job();
  job.training.device = device;
  job.training.local_batch_size = 2;  // with accumulation
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = testing::small_llama;
  TrainingRun run(job, options);
  Outcome outcome;
  for (int64_t step = 1; step <= 5; ++step) {
    const auto result = run.step(step, testing::batch_for(job, step), 1e-2);
    outcome.losses.push_back(result.loss);
    outcome.norms.push_back(result.gradient_norm);
  }
  return outcome;
}

TEST(GpuTraining, IsTheCpusButForRounding) {
  if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
    GTEST_SKIP() << "NOT CHECKED: training on a GPU (" << reason << ")";
  for (const char* mesh : {"one device", "dp_shard=2", "dp_shard=2,tp=3"}) {
    const auto cpu = train_on("cpu", mesh), gpu = train_on("cuda", mesh);
    for (size_t i = 0; i < cpu.losses.size(); ++i) {
      EXPECT_NEAR(gpu.losses[i], cpu.losses[i], 1e-4 * cpu.losses[i]) << mesh << " step " << i + 1;
      EXPECT_NEAR(gpu.norms[i], cpu.norms[i], 1e-3 * cpu.norms[i]) << mesh << " step " << i + 1;
    }
  }
}

/// What a step's speed is a share of.
TEST(GpuTraining, HasAPeakOfItsOwnProducts) {
  if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
    GTEST_SKIP() << "NOT CHECKED: products on a GPU (" << reason << ")";
  auto job = testing::native_job();
  job.training.device = "cuda";
  TrainingRun::Options options;
  options.mesh = parse_mesh("dp_shard=2");
  options.make_model = testing::small_llama;
  TrainingRun run(job, options);
  StepMeter meter(run.mesh(), c10::kFloat);
  meter.begin();
  EXPECT_GT(meter.end({}).peak_operations, 1e8);
}

TEST(GpuTraining, WithoutCudaIsAClearError) {
  if (rng::cuda_unavailable_reason().find("built without") == std::string::npos) GTEST_SKIP() << "built with CUDA";
  try {
    train_on("cuda", "one device");
    ADD_FAILURE() << "no error";
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "training.device = \"cuda\": built without CUDA (configure with -DLOCKSTEP_CUDA=ON)");
  }
}

}  // namespace
}  // namespace lockstep::trainer

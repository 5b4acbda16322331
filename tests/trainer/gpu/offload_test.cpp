// Optimizer state that the host keeps: bits and all that reads it are what they are where the GPU keeps it; skipped,
// with the reason, where there is none.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rng/cuda_fill.h"
#include "runtime/context/observer.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/on_gpu/state_visit.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/plain/pinned.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/compared_run.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/identity/run_identity.h"
#include "trainer/state/shard_digest.h"
#include "trainer/state/state_checkpoint.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

/// What observers see of the moments after each update.
struct WrittenMoments final : Observer {
  void after_op(const OpEvent& event, std::span<const c10::IValue> /*results*/) override {
    if (event.id.op != "mesh::adamw") return;
    for (const size_t moment : {2, 3})
      for (const auto& shard : sharded(event.arguments[moment].toTensor()).shards()->local_tensors())
        digests.push_back(digest_of_shard(shard).text());
  }
  std::vector<std::string> digests;
};

class GpuOffload : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
      GTEST_SKIP() << "NOT CHECKED: optimizer state of a GPU in the host's memory (" << reason << ")";
  }

  static Job job(bool offloads) {
    auto job = testing::native_job();
    job.training.device = "cuda";
    job.training.local_batch_size = 2;
    job.optimizer.offload_state = offloads;
    return job;
  }

  static TrainingRun::Options options() { return testing::small_llama_on(GetParam()); }

  static StepResult step(TrainingRun& run, const Job& job, int64_t number) {
    return run.step(number, testing::batch_for(job, number), 1e-2);
  }

  /// Where the tensors lie that are so called.
  static std::set<c10::DeviceType> devices(const TrainingState& state, std::string_view slot) {
    std::set<c10::DeviceType> all;
    for (const auto& entry : state)
      for (const auto& shard : sharded(slot.empty() ? entry.value : entry.slot(slot)).shards()->whole())
        all.insert(shard.device().type());
    return all;
  }
};

TEST_P(GpuOffload, HasTheBitsOfStateOnTheGpu) {
  using ::testing::ElementsAre;
  for (const char* numerics : {"native", "canonical"}) {
    if (numerics == std::string("canonical") && !cuda::has_kernels()) continue;  // built without the emulator
    auto offloaded = job(true), kept = job(false);
    offloaded.numerics.mode = kept.numerics.mode = numerics;
    TrainingRun run(offloaded, options()), other(kept, options());
    for (int64_t n = 1; n <= 3; ++n) {
      EXPECT_EQ(step(run, offloaded, n).gradient_norm, step(other, kept, n).gradient_norm);
      EXPECT_EQ(state_digest(run.state()), state_digest(other.state())) << numerics << " step " << n;
      EXPECT_THAT(devices(run.state(), "mean"), ElementsAre(c10::kCPU));
      EXPECT_THAT(devices(run.state(), "square"), ElementsAre(c10::kCPU));
      EXPECT_THAT(devices(run.state(), ""), ElementsAre(c10::kCUDA));
      EXPECT_THAT(devices(other.state(), "mean"), ElementsAre(c10::kCUDA));
    }
  }
}

TEST_P(GpuOffload, GoesThroughACheckpoint) {
  const TemporaryFolder folder;
  TrainingRun run(job(true), options());
  step(run, job(true), 1);
  save_state(folder.file("step-1"), {.step = 1, .sample = 12}, run.state());
  const auto saved = state_digest(run.state());
  EXPECT_EQ(identity_text(identity_facts(job(true), "")), identity_text(identity_facts(job(false), "")));
  for (const bool offloads : {true, false}) {
    TrainingRun resumed(job(offloads), options());
    load_state(folder.file("step-1"), resumed.state());
    EXPECT_EQ(state_digest(resumed.state()), saved);
    step(resumed, job(offloads), 2);
    if (offloads) step(run, job(true), 2);
    EXPECT_EQ(state_digest(resumed.state()), state_digest(run.state()));
  }
}

TEST_P(GpuOffload, IsVerified) {
  testing::Compared compared(GetParam(), job(true));
  const auto check = compared.step(1);
  EXPECT_TRUE(check.agrees()) << check.difference;
  EXPECT_GT(check.run_over_bound, 0) << "nothing was compared";
}

/// Who is told of updates finds them done.
TEST_P(GpuOffload, IsThereWhenUpdatesAreTold) {
  std::vector<std::string> told[2];
  for (const bool offloads : {true, false}) {
    TrainingRun run(job(offloads), options());
    run.on_update([&](const ParameterState& entry) {
      for (const auto& shard : sharded(entry.slot("square")).shards()->whole())
        told[offloads].push_back(digest_of_shard(shard).text());
    });
    step(run, job(offloads), 1);
  }
  EXPECT_GT(told[0].size(), 10U);
  EXPECT_EQ(told[1], told[0]);
}

/// Observers see what an update wrote.
TEST_P(GpuOffload, IsRecordedAsItIsWritten) {
  WrittenMoments kept, offloaded;
  for (auto* seen : {&kept, &offloaded}) {
    TrainingRun run(job(seen == &offloaded), options());
    const ObserverScope scope(run.world().observers(), *seen);
    step(run, job(seen == &offloaded), 1);
  }
  EXPECT_GT(kept.digests.size(), 20U);
  EXPECT_EQ(offloaded.digests, kept.digests);
}

/// Parts of a tensor, the last one shorter, are all of it; strides or no elements at all are no reason to fail.
TEST_P(GpuOffload, VisitsInParts) {
  const auto there = [](const at::Tensor& tensor) { return tensor.to(c10::kCUDA); };
  const auto rates = [](const at::Tensor& p, const at::Tensor& g, const at::Tensor& m, const at::Tensor& s) {
    const auto adamw = p.is_cuda() ? on_gpu::adamw : kernels::adamw;
    adamw(p, g, m, s, 0.1, 0.9, 0.95, 1e-8, 0.1, 0.19, 0.0975, 0.5);
  };
  for (const bool is_turned : {false, true})
    for (const int64_t rows : {0, 1, 7}) {
      const auto values = at::randn({4, rows, 3}), g = at::randn({rows, 3});
      const auto make = [&](int64_t i) { return is_turned ? values[i].t().clone().t() : values[i].clone(); };
      const auto p = make(0), m = make(1), s = make(2).abs();
      const auto pinned = [](const at::Tensor& tensor) {
        const auto made = tensor.is_contiguous() ? pinned_tensor(tensor.sizes(), at::kFloat)
                                                 : pinned_tensor(tensor.t().sizes(), at::kFloat).t();
        return at::Tensor(made).copy_(tensor);
      };
      const auto gpu = there(p), means = pinned(m), squares = pinned(s);
      on_gpu::update_visiting_state(gpu, there(g), means, squares, rates, /*most=*/5);
      on_gpu::wait_for_state();
      rates(p, g, m, s);
      for (const auto& [one, other] : {std::pair{gpu.cpu(), p}, {means, m}, {squares, s}})
        EXPECT_TRUE(at::allclose(one, other, 1e-5, 1e-6)) << rows << (is_turned ? " turned" : "");
    }
}

INSTANTIATE_TEST_SUITE_P(Meshes, GpuOffload, ::testing::Values("one device", "dp_replicate=2", "dp_shard=2,tp=3"));

}  // namespace
}  // namespace lockstep::trainer

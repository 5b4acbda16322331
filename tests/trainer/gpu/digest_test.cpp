// A state on a GPU is digested there; skipped, with the reason, where there is none.
#include <gtest/gtest.h>

#include "core/digest/place_digest.h"
#include "rng/cuda_fill.h"
#include "runtime/context/gpu.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/plain/tensor_bytes.h"
#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

class GpuDigest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
      GTEST_SKIP() << "NOT CHECKED: digests on a GPU (" << reason << ")";
    require_gpu(0);
  }
};

/// Parts of fused weights, rows and columns that are cut, tensors without dimensions.
TEST_F(GpuDigest, OfAStateIsTheCpus) {
  for (const auto* mesh : {"one device", "dp_shard=3", "dp_shard=2,tp=3"}) {
    auto job = testing::native_job();
    job.training.device = "cuda";
    auto options = testing::small_llama_on(mesh);
    TrainingRun run(job, options);
    run.step(1, testing::batch_for(job, 1), 1e-2);
    EXPECT_EQ(state_digest(run.state()), digest_of_held(held_shards(run.state()))) << mesh;
  }
}

TEST_F(GpuDigest, OfABoxCountsPlacesOfTheWhole) {
  const auto whole = at::arange(5 * 6 * 7, at::kFloat).view({5, 6, 7});
  const auto box = whole.narrow(0, 1, 3).narrow(1, 2, 4).narrow(2, 3, 4).contiguous();
  PlaceDigest expected;
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 4; ++j)
      expected.add(17, static_cast<uint64_t>(((i + 1) * 6 + j + 2) * 7 + 3), bytes_of(box[i][j]));
  const auto there = box.to(c10::kCUDA);
  EXPECT_EQ(on_gpu::place_sum(there, 17, (6 + 2) * 7 + 3, {3, 4, 4}, {42, 7, 1}), expected.result());
  EXPECT_NE(on_gpu::place_sum(there, 18, (6 + 2) * 7 + 3, {3, 4, 4}, {42, 7, 1}), expected.result());
  const auto many = at::arange(100'003, at::kFloat);  // several turns of all threads
  PlaceDigest of_many;
  of_many.add(3, 5, bytes_of(many));
  EXPECT_EQ(on_gpu::place_sum(many.to(c10::kCUDA), 3, 5, {many.numel()}, {1}), of_many.result());
  EXPECT_EQ(on_gpu::place_sum(many.narrow(0, 0, 0).to(c10::kCUDA), 3, 5, {0}, {1}), Digest{});
}

}  // namespace
}  // namespace lockstep::trainer

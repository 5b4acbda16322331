// The GPU that host memory plays refuses what a GPU would refuse: else the tests on it say little.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "runtime/plain/tensor_bytes.h"

namespace lockstep {
namespace {

const auto kGpu = at::TensorOptions().device(c10::kCUDA);

TEST(PretendGpu, ComputesAsTheCpu) {
  const auto x = at::arange(12, at::kFloat).view({3, 4});
  const auto there = x.to(c10::kCUDA);
  EXPECT_TRUE(there.is_cuda());
  EXPECT_TRUE(at::equal((there.t().mm(there) + 1).cpu(), x.t().mm(x) + 1));
  EXPECT_EQ(there.select(0, 1).sum().item<float>(), 4 + 5 + 6 + 7);
  there.select(1, 0).zero_();
  EXPECT_EQ(there.sum().item<float>(), 66 - 12);
}

TEST(PretendGpu, RefusesTensorsOfTheCpuInItsOps) {
  const auto there = at::ones({3}, kGpu);
  EXPECT_ANY_THROW(there + at::ones({3}));
  EXPECT_ANY_THROW(at::cat({there, at::ones({3})}));
  EXPECT_ANY_THROW(at::index_select(there, 0, at::zeros({1}, at::kLong)));
  EXPECT_EQ((there + at::scalar_tensor(2)).sum().item<float>(), 9) << "a number may come from the host";
}

TEST(PretendGpuDeathTest, LetsNobodyLookIntoItsMemory) {
  const auto there = at::ones({3}, kGpu);
  EXPECT_DEATH(std::fprintf(stderr, "%d", static_cast<int>(bytes_of(there)[0])), "");
}

}  // namespace
}  // namespace lockstep

#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "rng/cuda_fill.h"
#include "runtime/context/gpu.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "tests/support/cases/kernel_results.h"

/// What tests of canonical kernels on a GPU have in common: the bits of the CPU's.
namespace lockstep::testing {

using at::Tensor;

inline Tensor on_device(const Tensor& tensor) { return tensor.defined() ? tensor.to(c10::kCUDA) : tensor; }
/// Everything else is what it is.
template <class T>
const T& on_device(const T& other) {
  return other;
}

/// Every NaN the same one.
inline Tensor with_one_nan(const Tensor& x) { return x.is_floating_point() ? x.masked_fill(at::isnan(x), NAN) : x; }

inline void expect_same_bits(const Tensor& gpu, const Tensor& cpu, const std::string& what) {
  ASSERT_TRUE(gpu.is_cuda()) << what;
  const auto found = gpu.cpu();
  EXPECT_TRUE(same_bits(with_one_nan(found), with_one_nan(cpu)))
      << what << ": " << c10::str(found.sizes()) << " beside " << c10::str(cpu.sizes()) << ", at most "
      << (found.sizes() == cpu.sizes() && cpu.numel() > 0
              ? (found - cpu).to(c10::kDouble).abs().nan_to_num(0).max().item<double>()
              : 0)
      << " apart";
}
template <class... T>
void expect_same_bits(const std::tuple<T...>& gpu, const std::tuple<T...>& cpu, const std::string& what) {
  for_each_result(gpu, cpu, what, [](const auto&... each) { expect_same_bits(each...); });
}

/// run(arguments...) of the CPU and of a GPU.
template <class Run, class... Arguments>
void expect_cpu_bits(const std::string& what, const Run& run, const Arguments&... arguments) {
  const auto expected = run(arguments...);
  expect_same_bits(run(on_device(arguments)...), expected, what);
}

/// For float32 and bfloat16.
class CanonicalKernels : public ::testing::TestWithParam<c10::ScalarType> {
 protected:
  void SetUp() override {
    if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
      GTEST_SKIP() << "NOT CHECKED: canonical kernels on a GPU (" << reason << ")";
    require_gpu(0);
    ASSERT_TRUE(cuda::has_kernels());
  }
  /// Numbers of many sizes, whose sums differ with their order.
  Tensor make(c10::IntArrayRef sizes) { return make(sizes, GetParam()); }
  Tensor make(c10::IntArrayRef sizes, c10::ScalarType dtype) {
    const auto size = at::exp(at::randn(sizes, generator_, c10::kDouble));
    return at::mul(at::randn(sizes, generator_, c10::kDouble), size).to(dtype);
  }
  /// Not contiguous: every second row.
  Tensor sparse(c10::IntArrayRef sizes) {
    auto twice = sizes.vec();
    twice[0] *= 2;
    return make(twice).slice(0, 0, twice[0], 2);
  }
  /// Infinities and NaN among the numbers.
  static Tensor with_special_numbers(const Tensor& x) {
    auto flat = x.clone().flatten();
    const double special[] = {INFINITY, -INFINITY, NAN, -0.0, 0.0};
    for (int64_t i = 0; i < 5 && i * 7 + 1 < flat.numel(); ++i) flat[i * 7 + 1] = special[i];
    return flat.view(x.sizes());
  }

 private:
  at::Generator generator_ = at::detail::createCPUGenerator(20261129);
};

inline std::string dtype_name(const ::testing::TestParamInfo<c10::ScalarType>& tested) {
  return c10::toString(tested.param);
}

}  // namespace lockstep::testing

// Products of eight-bit numbers on a GPU: of small integers under powers of two, whose sums every order and every
// rounding leaves as they are, so that each row, column, sample and scale is told from the others.
#include <ATen/Functions.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/elementary/low_precision.h"
#include "rng/cuda_fill.h"
#include "runtime/context/gpu.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/cpu_kernels.h"

namespace lockstep {
namespace {

using at::Tensor;

constexpr auto kE4m3 = static_cast<int64_t>(elementary::NumberFormat::kE4m3);

Tensor there(const Tensor& tensor) { return tensor.to(c10::kCUDA); }

class GpuFloat8Products : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
      GTEST_SKIP() << "NOT CHECKED: products of eight-bit numbers on a GPU (" << reason << ")";
    require_gpu(0);
    if (!cuda::has_kernels()) GTEST_SKIP() << "NOT CHECKED: built without the emulator of kernels";
  }

  /// -2 ... 2, others at every place.
  static Tensor codes(c10::IntArrayRef sizes, int64_t format, int64_t salt) {
    const auto places = at::arange(c10::multiply_integers(sizes), at::kLong).mul_(2654435761 + 2 * salt);
    const auto numbers = at::remainder(at::bitwise_right_shift(places, 7), 5).sub_(2).to(at::kFloat).view(sizes);
    return numbers.to(format == kE4m3 ? c10::kFloat8_e4m3fn : c10::kFloat8_e5m2).view(at::kByte);
  }

  /// Of which the scale is 2^-1, 2^0 or 2^1.
  static Tensor maxima(c10::IntArrayRef sizes, int64_t format, c10::ScalarType dtype) {
    const double largest = format == kE4m3 ? 448 : 57344;
    const auto powers = at::remainder(at::arange(c10::multiply_integers(sizes)), 3).sub_(1);
    return at::exp2(powers.to(at::kDouble)).mul_(largest).view(sizes).to(dtype);
  }

  static void expect_same(const Tensor& gpu, const Tensor& cpu, const std::string& what) {
    EXPECT_EQ(gpu.scalar_type(), cpu.scalar_type()) << what;
    EXPECT_TRUE(at::equal(gpu.cpu(), cpu)) << what;
  }
};

TEST_P(GpuFloat8Products, OfRowsAreTheCpus) {
  for (const auto& [m, k, n] : {std::tuple{3, 32, 16}, {5, 16, 48}, {0, 16, 16}, {4, 0, 16}, {3, 24, 16}, {3, 16, 7}})
    for (const auto dtype : {c10::kBFloat16, c10::kFloat}) {
      const auto what = fmt::format("{} x {} x {}", m, k, n);
      const auto x = codes({2, m, k}, GetParam(), 1), weight = codes({n, k}, kE4m3, 2);
      const auto of_x = maxima({2, m, 1}, GetParam(), dtype), of_weight = maxima({n, 1}, kE4m3, dtype);
      const auto expected = kernels::float8_linear(x, of_x, weight, of_weight, GetParam(), true, dtype);
      EXPECT_TRUE(expected.numel() == 0 || k == 0 || expected.abs().sum().item<double>() > 0);
      expect_same(
          on_gpu::float8_linear(there(x), there(of_x), there(weight), there(of_weight), GetParam(), true, dtype),
          expected, what);
      const auto columns = there(weight.t().contiguous()).t();
      expect_same(on_gpu::float8_linear(there(x), there(of_x), columns, there(of_weight), GetParam(), true, dtype),
                  expected, "of columns, " + what);
    }
}

TEST_P(GpuFloat8Products, OfSamplesAreTheCpus) {
  for (const auto& [length, n, k] : {std::tuple{16, 32, 48}, {48, 16, 16}, {0, 16, 16}, {12, 16, 16}, {16, 7, 16}})
    for (const int64_t samples : {1, 3})
      for (const auto dtype : {c10::kBFloat16, c10::kFloat}) {
        const auto g = codes({samples, length, n}, GetParam(), 3), x = codes({samples, length, k}, kE4m3, 4);
        const auto of_g = maxima({samples, 1, n}, GetParam(), dtype), of_x = maxima({samples, 1, k}, kE4m3, dtype);
        expect_same(on_gpu::float8_weight_gradient(there(g), there(of_g), there(x), there(of_x), GetParam(), true),
                    kernels::float8_weight_gradient(g, of_g, x, of_x, GetParam(), true),
                    fmt::format("{} samples of {} x {} x {}", samples, length, n, k));
      }
}

/// As what they are factors of: 0 times infinity.
TEST_P(GpuFloat8Products, OfWhatHasNoFiniteMaximumAreNoNumbers) {
  const auto x = at::zeros({2, 16}, at::kByte), weight = codes({16, 16}, kE4m3, 5);
  const auto of_x = at::tensor({1.0F, INFINITY}).view({2, 1}), of_weight = maxima({16, 1}, kE4m3, c10::kFloat);
  const auto y =
      on_gpu::float8_linear(there(x), there(of_x), there(weight), there(of_weight), GetParam(), false, c10::kBFloat16)
          .cpu();
  EXPECT_FALSE(y[0].isnan().any().item<bool>());
  EXPECT_TRUE(y[1].isnan().all().item<bool>());
}

/// In one pass where one scale is of rows, columns, samples or all; whatever the width, also beside a fourth kind.
TEST_P(GpuFloat8Products, TakeTheCpusCodes) {
  const auto x = at::randn({3, 5, 40}), wide = at::randn({3, 2, 6144}), odd = at::randn({2, 3, 7}),
             deep = at::randn({2, 3, 4, 5});
  const std::pair<Tensor, std::vector<int64_t>> cases[] = {{x, {3, 5, 1}},
                                                           {x, {3, 1, 40}},
                                                           {x, {3, 1, 1}},
                                                           {x, {}},
                                                           {x, {1, 5, 1}},
                                                           {wide, {}},
                                                           {wide, {3, 1, 1}},
                                                           {wide, {3, 2, 1}},
                                                           {x, {40}},
                                                           {odd, {2, 3, 1}},
                                                           {odd, {1, 1, 7}},
                                                           {deep, {2, 1, 4, 1}},
                                                           {deep, {1, 3, 1, 5}},
                                                           {at::randn({0, 4}), {0, 1}}};
  for (const auto& [values, sizes] : cases)
    for (const auto dtype : {c10::kFloat, c10::kBFloat16}) {
      const auto maximum = at::rand(sizes).add_(0.5F).to(dtype), given = values.to(dtype);
      expect_same(kernels::float8_codes(there(given), there(maximum), GetParam(), false),
                  kernels::float8_codes(given, maximum, GetParam(), false),
                  fmt::format("{} under {}", c10::str(given.sizes()), c10::str(maximum.sizes())));
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, GpuFloat8Products, ::testing::Values(0, 1),
                         [](const auto& tested) { return tested.param == 0 ? "E4M3" : "E5M2"; });

}  // namespace
}  // namespace lockstep

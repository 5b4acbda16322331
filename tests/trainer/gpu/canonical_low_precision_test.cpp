// Numbers of few bits and the Hadamard transform on a GPU beside the CPU's, in all bits.
#include "core/elementary/low_precision.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "tests/trainer/gpu/canonical_results.h"

namespace lockstep {
namespace {

using at::Tensor;

using CanonicalLowPrecision = testing::CanonicalKernels;
INSTANTIATE_TEST_SUITE_P(Gpu, CanonicalLowPrecision, ::testing::Values(c10::kFloat, c10::kBFloat16),
                         testing::dtype_name);

constexpr int64_t kFormats = std::size(elementary::kGrids), kFloat8Formats = 2;

/// Of a tensor, of rows and of columns: zeros, infinities and NaN among the maxima.
std::vector<Tensor> maxima_of(const Tensor& x) {
  const auto size = at::abs(x);
  return {at::amax(size), at::amax(size, {1}, true), at::amax(size, {0}, true), at::zeros({1}, x.options())};
}

TEST_P(CanonicalLowPrecision, NumbersUnderAScale) {
  for (const auto& x : {sparse({5, 700}).mul(30), with_special_numbers(make({40, 33})), make({1, 1})})
    for (const auto& maximum : maxima_of(x))
      for (int64_t format = 0; format < kFormats; ++format)
        for (const bool power_of_two : {false, true}) {
          const auto run = [&](const Tensor& each, const Tensor& of) {
            return kernels::quantize(each, of, format, power_of_two);
          };
          testing::expect_cpu_bits(fmt::format("format {}", format), run, x, maximum);
        }
}

TEST_P(CanonicalLowPrecision, OfFloat64) {
  const auto x = make({7, 33}, c10::kDouble);
  const auto whole = [](const Tensor& each) {
    return kernels::quantize(each, kernels::absolute_maximum(each), 0, false);
  };
  testing::expect_cpu_bits("under one scale", whole, x);
  testing::expect_cpu_bits(
      "in blocks", [](const Tensor& each) { return kernels::quantize_blocks(each, 1, 2); }, x);
}

TEST_P(CanonicalLowPrecision, CodesAndWhatTheyStandFor) {
  const auto x = with_special_numbers(make({50, 41}).mul(10)), maximum = at::full({1}, 20, x.options());
  const auto all = at::arange(256).to(c10::kByte).view({16, 16});
  for (int64_t format = 0; format < kFloat8Formats; ++format)
    for (const bool power_of_two : {false, true}) {
      const auto codes = [&](const Tensor& each, const Tensor& of) {
        return kernels::float8_codes(each, of, format, power_of_two);
      };
      const auto numbers = [&](const Tensor& each, const Tensor& of) {
        return kernels::float8_numbers(each, of, format, power_of_two);
      };
      testing::expect_cpu_bits(fmt::format("codes of format {}", format), codes, x, maximum);
      testing::expect_cpu_bits(fmt::format("numbers of format {}", format), numbers, all, maximum);
      testing::expect_cpu_bits(fmt::format("transposed codes of format {}", format), numbers, all.t(), maximum);
    }
}

TEST_P(CanonicalLowPrecision, Blocks) {
  for (const auto& x : {sparse({3, 70, 5}), make({2, 32, 64}).mul(1e3), with_special_numbers(make({2, 33, 3})),
                        make({0, 32, 4}), make({2, 0, 3}), make({1, 700, 1}), make({2, 40, 3}).mul(1e-39)})
    for (int64_t dim = -1; dim < x.dim(); ++dim)
      for (int64_t format = 0; format < kFormats; ++format)
        testing::expect_cpu_bits(
            fmt::format("format {} along {}", format, dim),
            [&](const Tensor& each) { return kernels::quantize_blocks(each, dim, format); }, x);
}

/// Rows that share a tile, whole ones, and a part of one; rows longer than a tile; less work than threads.
TEST_P(CanonicalLowPrecision, HadamardTransforms) {
  for (const auto& [rows, width] :
       {std::pair<int64_t, int64_t>{0, 8}, {1, 2}, {3, 64}, {700, 32}, {5, 4096}, {3, 8192}})
    testing::expect_cpu_bits(
        fmt::format("{} x {}", rows, width), [](const Tensor& x) { return kernels::hadamard_transform(x, 0.3); },
        sparse({rows, width}));
  testing::expect_cpu_bits(
      "float64", [](const Tensor& x) { return kernels::hadamard_transform(x, 0.3); }, make({3, 64}, c10::kDouble));
  testing::expect_cpu_bits(
      "special numbers", [](const Tensor& x) { return kernels::hadamard_transform(x, 1); },
      with_special_numbers(make({4, 64})));
}

}  // namespace
}  // namespace lockstep

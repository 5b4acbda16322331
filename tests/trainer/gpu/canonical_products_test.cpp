// Canonical products on a GPU beside the CPU's, in all bits: sizes that are no tiles and no leaves, parts of sums,
// samples, strides, batches, numbers that are not finite.
#include "runtime/kernels/tensors/canonical_products.h"

#include "tests/support/message_of.h"
#include "tests/trainer/gpu/canonical_results.h"

namespace lockstep {
namespace {

using at::Tensor;
using kernels::ContractedRange;
using testing::expect_cpu_bits;

using CanonicalProducts = testing::CanonicalKernels;
INSTANTIATE_TEST_SUITE_P(Gpu, CanonicalProducts, ::testing::Values(c10::kFloat, c10::kBFloat16), testing::dtype_name);

const auto linear = [](const Tensor& x, const Tensor& weight, const ContractedRange& range) {
  return kernels::linear(x, weight, {}, range);
};

TEST_P(CanonicalProducts, OfAnySize) {
  for (const int64_t m : {0, 1, 5, 64, 70, 129})
    for (const int64_t n : {1, 63, 65})
      for (const int64_t k : {0, 1, 16, 63, 64, 100, 129, 700, 2500})
        expect_cpu_bits(fmt::format("{} x {} x {}", m, n, k), linear, make({m, k}), make({n, k}), ContractedRange{});
}

/// From 1,024 rows and columns on tiles are larger.
TEST_P(CanonicalProducts, OfLargeTiles) {
  for (const int64_t k : {40, 130})
    expect_cpu_bits(fmt::format("large, {}", k), linear, make({1030, k}), make({1100, k}), ContractedRange{});
}

TEST_P(CanonicalProducts, OfPartsOfASum) {
  constexpr int64_t kAll = 700;
  const int64_t leaf = SumTree::over_elements(kAll).leaf;
  for (const auto& [first, end] : {std::pair<int64_t, int64_t>{0, 3}, {3, 7}, {8, 16}, {5, 5}})
    for (const int64_t rounded : {0, 2}) {
      const int64_t length = std::min(end * leaf, kAll) - first * leaf;
      expect_cpu_bits(fmt::format("leaves {} to {}, {} levels", first, end, rounded), linear, make({9, length}),
                      make({20, length}), ContractedRange{first * leaf, kAll, rounded});
    }
}

TEST_P(CanonicalProducts, OfSamples) {
  const auto gradient = [](const Tensor& g, const Tensor& x, const ContractedRange& samples) {
    return kernels::weight_gradient(g, x, samples);
  };
  for (const auto& [samples, positions] : {std::pair<int64_t, int64_t>{1, 70}, {3, 1}, {5, 130}, {8, 40}, {2, 0}}) {
    const auto g = make({samples, positions, 17}), x = make({samples, positions, 33});
    const auto what = fmt::format("{} samples of {}", samples, positions);
    expect_cpu_bits(what, gradient, g, x, ContractedRange{});
    expect_cpu_bits(what + " of 11", gradient, g, x, ContractedRange{3, 11});
    expect_cpu_bits(what + ", no rows of memory", gradient, g.transpose(1, 2).contiguous().transpose(1, 2),
                    x.narrow(2, 1, 20), ContractedRange{});
  }
}

TEST_P(CanonicalProducts, OfBatchesAndStrides) {
  const auto product = [](const Tensor& a, const Tensor& b) { return kernels::product(a, b); };
  expect_cpu_bits("batches", product, make({3, 1, 7, 90}), make({2, 90, 5}));
  expect_cpu_bits("transposed", product, make({90, 7}).t(), make({5, 90}).t());
  expect_cpu_bits("every second", product, sparse({7, 90}), make({90, 10}).slice(1, 0, 10, 2));
  const auto special = testing::CanonicalKernels::with_special_numbers(make({6, 40}));
  expect_cpu_bits("special numbers", product, special, make({40, 6}));
}

TEST_P(CanonicalProducts, WithABias) {
  const auto with_bias = [](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return kernels::linear(x, weight, bias);
  };
  expect_cpu_bits("bias", with_bias, make({2, 9, 70}), make({11, 70}), make({11}));
}

TEST_P(CanonicalProducts, OfFloat64AreRefused) {
  const auto x = make({3, 4}, c10::kDouble).to(c10::kCUDA);
  EXPECT_EQ(testing::message_of<BadInput>([&] { kernels::linear(x, x); }),
            "a product of Double on a GPU: canonical numerics computes in float32 there, of float32 and bfloat16");
}

}  // namespace
}  // namespace lockstep

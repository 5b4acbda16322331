// Canonical sums on a GPU beside the CPU's, in all bits: along any dimension, whole and in parts, of exponentials, of a
// norm's and a table's gradients, of integers.
#include "runtime/kernels/tensors/canonical_sums.h"

#include "runtime/kernels/tensors/cpu_kernels.h"
#include "tests/trainer/gpu/canonical_results.h"

namespace lockstep {
namespace {

using at::Tensor;
using kernels::Summands;
using testing::expect_cpu_bits;

using CanonicalSums = testing::CanonicalKernels;
INSTANTIATE_TEST_SUITE_P(Gpu, CanonicalSums, ::testing::Values(c10::kFloat, c10::kBFloat16), testing::dtype_name);

const auto sum = [](const Tensor& x, int64_t dim, const Summands& summands) {
  return kernels::ordered_sum(x, dim, summands);
};

TEST_P(CanonicalSums, AlongAnyDimension) {
  for (const int64_t size : {0, 1, 15, 16, 17, 63, 64, 100, 700, 3001}) {
    const auto all = Summands::all(SumTree::over_elements(size));
    expect_cpu_bits(fmt::format("rows of {}", size), sum, sparse({5, size}), 1, all);
    expect_cpu_bits(fmt::format("columns of {}", size), sum, make({size, 37}), 0, all);
    expect_cpu_bits(fmt::format("between, {}", size), sum, make({3, size, 5}), 1, all);
  }
}

TEST_P(CanonicalSums, OverSamplesAndInParts) {
  for (const int64_t samples : {1, 2, 5, 300})
    expect_cpu_bits("samples", sum, make({samples, 7}), 0, Summands::all(SumTree::over_samples(samples)));
  const auto tree = SumTree::over_elements(700);
  for (const auto& [first, end] : {std::pair<int64_t, int64_t>{0, 5}, {5, 12}, {8, 16}, {3, 3}}) {
    const Summands part{tree, first * tree.leaf, std::min(end * tree.leaf, tree.size) - first * tree.leaf};
    expect_cpu_bits("rows in parts", sum, make({4, part.count}), 1, part);
    expect_cpu_bits("columns in parts", sum, make({part.count, 9}), 0, part);
  }
}

TEST_P(CanonicalSums, KeepNumbersThatAreNotFinite) {
  const auto x = with_special_numbers(make({6, 40}));
  const auto all = Summands::all(SumTree::over_elements(40));
  expect_cpu_bits("rows", sum, x, 1, all);
  expect_cpu_bits("zeros", sum, at::full({3, 40}, -0.0, x.options()), 1, all);
}

TEST_P(CanonicalSums, OfExponentialsAndNorms) {
  const auto exponentials = [](const Tensor& logits, const Tensor& shift, const Summands& summands) {
    return kernels::ordered_exponential_sum(logits, shift, summands);
  };
  const auto norms = [](const Tensor& g, const Tensor& x, const Tensor& r, const Summands& summands) {
    return kernels::ordered_norm_gradient(g, x, r, summands);
  };
  for (const int64_t size : {1, 20, 100, 1500}) {
    const auto all = Summands::all(SumTree::over_elements(size));
    expect_cpu_bits("exponentials", exponentials, make({7, size}).mul(20), make({7}, c10::kFloat), all);
    expect_cpu_bits("norms", norms, make({3, size, 40}), make({3, size, 40}), make({3, size}, c10::kFloat), all);
  }
}

TEST_P(CanonicalSums, OfATablesGradient) {
  const auto table = [](const Tensor& gradient, const Tensor& tokens, const Summands& samples, int64_t length,
                        int64_t first_row, int64_t rows) {
    return kernels::ordered_table_gradient(gradient, tokens, samples, length, first_row, rows);
  };
  for (const auto& [samples, length] : {std::pair<int64_t, int64_t>{1, 1}, {3, 70}, {5, 200}, {0, 9}}) {
    const auto tokens = at::arange(samples * length).mul(7).remainder(11).mul(2);
    const auto gradient = make({samples * length, 6});
    expect_cpu_bits("all rows", table, gradient, tokens, Summands::all(SumTree::over_samples(samples)), length, 0, 30);
    expect_cpu_bits("some rows, some samples", table, gradient, tokens,
                    Summands{SumTree::over_samples(samples + 6), 3, samples}, length, 4, 9);
  }
}

/// Values beyond what is counted among them.
TEST_P(CanonicalSums, OfIntegersAndMaxima) {
  const auto losses = [](const Tensor& x) { return kernels::fixed_point_sum(x); };
  const auto squares = [](const Tensor& x, double scale) { return kernels::scaled_squares(x, scale); };
  const auto maximum = [](const Tensor& x) { return kernels::absolute_maximum(x); };
  for (const auto& x : {make({0}), make({1}), make({5001}), make({300}).mul(1e4), with_special_numbers(make({100}))}) {
    expect_cpu_bits("losses", losses, x);
    expect_cpu_bits("maximum", maximum, x);
    for (const double scale : {0x1p10, 0x1p20, 0x1p26}) expect_cpu_bits("squares", squares, x, scale);
  }
}

}  // namespace
}  // namespace lockstep

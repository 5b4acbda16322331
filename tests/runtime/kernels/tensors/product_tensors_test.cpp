#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/kernels/tensors/canonical_products.h"
#include "tests/support/threads.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::same_bits;

/// Leaves by LibTorch, joined along the tree: up to 192 summands and with more than a few rows and columns it adds them
/// as one chain of fma, as the contract does.
Tensor by_libtorch(const Tensor& a, const Tensor& b, const SumTree& tree, const SumNode& node) {
  const auto [start, end] = elements_of(tree, node);
  if (node.height == 0) return at::mm(a.slice(1, start, end), b.slice(0, start, end)).add(0.0);
  const Tensor left = by_libtorch(a, b, tree, {node.height - 1, node.index * 2});
  const SumNode right{node.height - 1, node.index * 2 + 1};
  return elements_of(tree, right).start < tree.size ? left.add(by_libtorch(a, b, tree, right)) : left;
}

TEST(ProductTensors, AreTheTreeOverLeavesOfLibtorch) {
  const testing::Threads one(1);  // with more LibTorch may cut a leaf
  for (const auto& [m, n, k] : {std::tuple{17, 40, 33}, {32, 64, 256}, {64, 48, 770}, {128, 96, 2047}, {5, 13, 100}}) {
    const auto a = at::randn({m, k}), b = at::randn({k, n}), transposed = at::randn({n, k}).t();
    const auto tree = SumTree::over_elements(k);
    EXPECT_TRUE(same_bits(kernels::product(a, b), by_libtorch(a, b, tree, {tree.height, 0}))) << m << n << k;
    EXPECT_TRUE(same_bits(kernels::product(a, transposed), by_libtorch(a, transposed, tree, {tree.height, 0})));
  }
}

double worst(const Tensor& a, const Tensor& b) {
  return (a.to(c10::kDouble) - b.to(c10::kDouble)).abs().max().item<double>();
}

TEST(ProductTensors, BroadcastTheirLeadingDimensions) {
  const auto a = at::randn({3, 1, 5, 70}, c10::kDouble), b = at::randn({4, 70, 6}, c10::kDouble);
  const auto result = kernels::product(a, b);
  EXPECT_EQ(result.sizes(), (std::vector<int64_t>{3, 4, 5, 6}));
  EXPECT_LT(worst(result, at::matmul(a, b)), 1e-13);
  EXPECT_TRUE(same_bits(result[2][1], kernels::product(a[2][0], b[1])));
  EXPECT_EQ(kernels::product(a, b, {0, 140}).sizes(), (std::vector<int64_t>{1, 3, 4, 5, 6}));
}

TEST(ProductTensors, DoNotDependOnRowsColumnsOrThreads) {
  const auto a = at::randn({130, 300}), b = at::randn({300, 150});
  const auto whole = kernels::product(a, b);
  for (const auto& [from, to] : {std::pair{0, 1}, {3, 20}, {129, 130}, {60, 130}}) {
    EXPECT_TRUE(same_bits(kernels::product(a.slice(0, from, to), b), whole.slice(0, from, to)));
    EXPECT_TRUE(same_bits(kernels::product(a, b.slice(1, from, to)), whole.slice(1, from, to)));
  }
  for (const int count : {1, 2, 4}) {
    const testing::Threads threads(count);
    EXPECT_TRUE(same_bits(kernels::product(a, b), whole)) << count;
  }
}

TEST(ProductTensors, LinearAddsItsBiasLast) {
  const auto input = at::randn({2, 7, 90}), weight = at::randn({11, 90}), bias = at::randn({11});
  const auto expected = kernels::product(input, weight.t());
  EXPECT_TRUE(same_bits(kernels::linear(input, weight), expected));
  EXPECT_TRUE(same_bits(kernels::linear(input, weight, bias), expected + bias));
  EXPECT_THROW(kernels::linear(input.slice(2, 0, 45), weight.slice(1, 0, 45), bias, {0, 90}), BadInput);
}

TEST(ProductTensors, Bfloat16IsAddedInSinglePrecisionAndRoundedOnce) {
  const auto input = at::randn({6, 200}).to(c10::kBFloat16), weight = at::randn({9, 200}).to(c10::kBFloat16);
  const auto wide = kernels::linear(input.to(c10::kFloat), weight.to(c10::kFloat));
  EXPECT_TRUE(same_bits(kernels::linear(input, weight), wide.to(c10::kBFloat16)));
  const auto half = kernels::linear(input.slice(1, 0, 100), weight.slice(1, 0, 100), {}, {0, 200});
  EXPECT_EQ(half.scalar_type(), c10::kFloat);
}

TEST(ProductTensors, RangesGiveNodesThatAddUp) {
  const auto input = at::randn({4, 256}), weight = at::randn({8, 256});
  const auto left = kernels::linear(input.slice(1, 0, 128), weight.slice(1, 0, 128), {}, {0, 256});
  const auto right = kernels::linear(input.slice(1, 128), weight.slice(1, 128), {}, {128, 256});
  EXPECT_EQ(left.size(0), 1);
  EXPECT_TRUE(same_bits(left[0] + right[0], kernels::linear(input, weight)));
}

/// Outer products one after the other, as the contract adds them.
TEST(ProductTensors, WeightGradientsAddSamplesOutsideOfPositions) {
  const auto gradient = at::randn({5, 70, 6}), input = at::randn({5, 70, 9});
  std::vector<Tensor> samples;
  for (int64_t s = 0; s < 5; ++s) samples.push_back(kernels::product(gradient[s].t(), input[s]));
  const auto expected = ((samples[0] + samples[1]) + (samples[2] + samples[3])) + samples[4];
  EXPECT_TRUE(same_bits(kernels::weight_gradient(gradient, input, {}), expected));
  const auto nodes = kernels::weight_gradient(gradient.slice(0, 1, 4), input.slice(0, 1, 4), {1, 5});
  EXPECT_EQ(nodes.size(0), 2);
  EXPECT_TRUE(same_bits(nodes[0], samples[1]));
  EXPECT_TRUE(same_bits(nodes[1], samples[2] + samples[3]));
}

TEST(ProductTensors, WeightGradientsTakeAnyLayout) {
  const auto gradient = at::randn({3, 4, 5, 6}), input = at::randn({3, 4, 5, 7});
  const auto expected = kernels::weight_gradient(gradient, input, {});
  const auto other = [](const Tensor& x) { return x.permute({3, 1, 0, 2}).contiguous().permute({2, 1, 3, 0}); };
  EXPECT_TRUE(same_bits(kernels::weight_gradient(other(gradient), other(input), {}), expected));
  EXPECT_TRUE(same_bits(kernels::weight_gradient(gradient.flatten(1, 2), input.flatten(1, 2), {}), expected));
  EXPECT_LT(worst(expected, at::einsum("abcn,abck->nk", {gradient, input})), 1e-4);
}

TEST(ProductTensors, TakeEmptyOperands) {
  EXPECT_TRUE(same_bits(kernels::product(at::empty({3, 0}), at::empty({0, 4})), at::zeros({3, 4})));
  EXPECT_EQ(kernels::product(at::empty({0, 5}), at::empty({5, 4})).sizes(), (std::vector<int64_t>{0, 4}));
  EXPECT_TRUE(same_bits(kernels::weight_gradient(at::empty({0, 5, 3}), at::empty({0, 5, 4}), {}), at::zeros({3, 4})));
  EXPECT_EQ(kernels::weight_gradient(at::empty({0, 5, 3}), at::empty({0, 5, 4}), {2, 8}).size(0), 0);
}

TEST(ProductTensors, RefuseWhatDoesNotFit) {
  EXPECT_THROW(kernels::product(at::ones({2, 3}), at::ones({4, 2})), BadInput);
  EXPECT_THROW(kernels::product(at::ones({2, 3}), at::ones({3, 2}, c10::kDouble)), BadInput);
  EXPECT_THROW(kernels::product(at::ones({2, 3}, c10::kLong), at::ones({3, 2}, c10::kLong)), BadInput);
}

}  // namespace
}  // namespace lockstep

// Products in 16 bits whose upper levels are rounded (World::Options::rounded_levels): what is added in which dtype,
// and what travels.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/kernels/tensors/canonical_products.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::same_bits;

Tensor random_halves(c10::IntArrayRef sizes) { return at::randn(sizes).to(c10::kBFloat16); }

/// The tree in plain words: a node of the lowest rounded level is its own product, rounded; each node above is the
/// rounded sum of two rounded ones.
Tensor by_hand(const Tensor& a, const Tensor& b, const SumTree& tree, const SumNode& node, int lowest) {
  const auto [start, end] = elements_of(tree, node);
  if (node.height <= lowest) {
    const auto part = kernels::product(a.slice(1, start, end), b.slice(0, start, end), {start, tree.size});
    EXPECT_EQ(part.size(0), 1);
    return part[0].to(c10::kBFloat16);
  }
  auto left = by_hand(a, b, tree, {node.height - 1, node.index * 2}, lowest);
  const SumNode right{node.height - 1, node.index * 2 + 1};
  if (elements_of(tree, right).start >= tree.size) return left;
  return (left.to(c10::kFloat) + by_hand(a, b, tree, right, lowest).to(c10::kFloat)).to(c10::kBFloat16);
}

TEST(RoundedLevels, AreTheTreeByHand) {
  for (const auto& [m, n, k] :
       {std::tuple{3, 5, 1}, {4, 7, 63}, {9, 17, 64}, {5, 33, 770}, {16, 8, 2047}, {2, 3, 4096}})
    for (const int64_t levels : {1, 2, 3, 6}) {
      const auto a = random_halves({m, k}), b = random_halves({k, n});
      const auto tree = SumTree::over_elements(k);
      const int lowest = std::max(tree.height - static_cast<int>(levels), 0);
      const auto expected = by_hand(a, b, tree, {tree.height, 0}, lowest);
      EXPECT_TRUE(same_bits(kernels::product(a, b, {0, -1, levels}), expected)) << k << ", " << levels << " levels";
      EXPECT_TRUE(same_bits(kernels::linear(a, b.t(), {}, {0, -1, levels}), expected)) << k << ", " << levels;
      if (m * n > 100 && k > 512 && levels > 1) {
        EXPECT_FALSE(same_bits(kernels::product(a, b), expected)) << "rounding shows";
      }
    }
}

TEST(RoundedLevels, TakeEmptyOperands) {
  const auto none = at::empty({3, 0}, c10::kBFloat16), tall = at::empty({0, 4}, c10::kBFloat16);
  EXPECT_TRUE(same_bits(kernels::product(none, tall, {0, -1, 2}), at::zeros({3, 4}, c10::kBFloat16)));
  EXPECT_EQ(kernels::product(tall, random_halves({4, 5}), {0, -1, 1}).sizes(), (std::vector<int64_t>{0, 5}));
  EXPECT_EQ(kernels::product(none, tall, {0, 256, 1}).size(0), 0) << "a rank without summands";
}

struct Sent {
  c10::ScalarType dtype;
  double bytes;
  Tensor value;
};

Sent product_on(int64_t ranks, int64_t levels, c10::ScalarType dtype = c10::kBFloat16) {
  const auto world =
      testing::simulated_world({{"tp", ranks}}, {.numerics = Numerics::kCanonical, .rounded_levels = levels});
  const auto& mesh = world->mesh({{"tp", ranks}});
  const auto fractions = [&](c10::IntArrayRef sizes) { return testing::exact_tensor(sizes).mul(0.1).to(dtype); };
  const auto product = at::mm(distribute(fractions({6, 512}), Layout::parse(mesh, "[tp=S(1:32)]")),
                              distribute(fractions({512, 10}), Layout::parse(mesh, "[tp=S(0:32)]")));
  const auto stored = sharded(product).shards()->local_tensors()[0].scalar_type();
  const auto whole = redistribute(product, Layout::replicated(mesh));
  return {stored, world->traffic().on("tp", CollectiveKind::kAllReduce).bytes, gather(whole)};
}

TEST(RoundedLevels, TravelAsWideAsTheResultWhereEnoughOfThemCrossRanks) {
  const auto one = product_on(1, 0).value;
  const auto one_rounded = product_on(1, 1).value, one_rounded_twice = product_on(1, 2).value;
  EXPECT_FALSE(same_bits(one, one_rounded));
  EXPECT_FALSE(same_bits(one_rounded, one_rounded_twice));
  const struct {
    int64_t ranks, levels;
    c10::ScalarType dtype;
    const Tensor& value;
  } cases[] = {{2, 0, c10::kFloat, one},
               {2, 1, c10::kBFloat16, one_rounded},
               {4, 1, c10::kFloat, one_rounded},
               {4, 2, c10::kBFloat16, one_rounded_twice},
               {8, 2, c10::kFloat, one_rounded_twice},
               {3, 2, c10::kFloat, one_rounded_twice},
               {2, 2, c10::kBFloat16, one_rounded_twice}};
  for (const auto& [ranks, levels, dtype, value] : cases) {
    const auto sent = product_on(ranks, levels);
    EXPECT_EQ(sent.dtype, dtype) << ranks << " ranks, " << levels << " levels";
    EXPECT_TRUE(same_bits(sent.value, value)) << ranks << " ranks, " << levels << " levels";
    EXPECT_EQ(sent.bytes * 2, product_on(ranks, 0).bytes * (dtype == c10::kBFloat16 ? 1 : 2))
        << ranks << ", " << levels;
  }
}

TEST(RoundedLevels, AreOfSixteenBitsAlone) {
  EXPECT_TRUE(same_bits(product_on(4, 3, c10::kFloat).value, product_on(1, 0, c10::kFloat).value));
  EXPECT_EQ(product_on(4, 3, c10::kFloat).bytes, product_on(4, 0, c10::kFloat).bytes);
}

TEST(RoundedLevels, AreSaidInTheLayout) {
  const auto world = testing::simulated_world({{"tp", 2}}, {.numerics = Numerics::kCanonical});
  const auto& mesh = world->mesh("tp=2");
  const auto layout = Layout::parse(mesh, "[tp=P(sum:128/32~2)]");
  EXPECT_EQ(layout.text(), "[tp=P(sum:128/32~2)]");
  EXPECT_NE(layout, Layout::parse(mesh, "[tp=P(sum:128/32)]"));
  EXPECT_TRUE(mesh.specs().intern(layout, {4}, c10::kBFloat16)->holds_rounded);
  EXPECT_NE(mesh.specs().intern(layout, {4}, c10::kBFloat16)->digest,
            mesh.specs().intern(Layout::parse(mesh, "[tp=P(sum:128/32)]"), {4}, c10::kBFloat16)->digest);
}

}  // namespace
}  // namespace lockstep

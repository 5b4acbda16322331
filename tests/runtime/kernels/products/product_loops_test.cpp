#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/cases/product_cases.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/mutants.h"

namespace lockstep {
namespace {

using testing::Numbers;
using testing::ProductCase;
using testing::same_numbers;

template <class Input, class T>
void kernels_agree_with_oracle(InstructionSet set) {
  const int threads = *rc::gen::element(1, 2, 4);
  testing::product_equals_oracle<Input, T>([&](const auto&... arguments) {
    kernels::product<Input, T>(arguments..., testing::thread_workers(threads), set);
  });
}

class ProductLoops : public testing::OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, ProductLoops, testing::every_set(), testing::set_name);

TEST_P(ProductLoops, GiveTheOraclesBitsInSinglePrecision) {
  testing::expect_holds([] { kernels_agree_with_oracle<float, float>(GetParam()); });
}
TEST_P(ProductLoops, GiveTheOraclesBitsInDoublePrecision) {
  testing::expect_holds([] { kernels_agree_with_oracle<double, double>(GetParam()); });
}
TEST_P(ProductLoops, GiveTheOraclesBitsForBfloat16) {
  testing::expect_holds([] { kernels_agree_with_oracle<kernels::Bfloat16, float>(GetParam()); });
}

/// Sizes around the edges of tiles, panels, pieces of work and groups.
TEST_P(ProductLoops, AgreeAtTheEdgesOfTheirBlocks) {
  uint32_t seed = 0;
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{113, 33, 1025},
                                {14, 32, 511},
                                {28, 513, 64},
                                {1, 1, 4097},
                                {225, 1, 33},
                                {15, 1025, 96},
                                {113, 545, 1100},
                                {3, 2100, 16},     // two blocks of columns that are packed one after the other
                                {514, 514, 520}})  // of a sum of several groups, too
    for (const int threads : {1, 4}) {
      const ProductCase<float, float> product(m, n, kernels::Contraction::over(k), Numbers::kNormal, ++seed);
      EXPECT_TRUE(same_numbers(product.run(GetParam(), threads), product.expected))
          << m << " " << n << " " << k << " " << threads;
    }
}

TEST_P(ProductLoops, NeverGiveNegativeZero) {
  const float tiny = -1e-40f, small = 1e-40f, zero = -0.0f;
  for (const auto& [x, y] : {std::pair{tiny, small}, {zero, small}})
    for (const int64_t length : {1, 40, 64, 100, 2000}) {
      const kernels::Factor<float> a{&x, 0, 0, 0}, b{&y, 0, 0, 0};
      float result = 7;
      kernels::product<float, float>(1, 1, a, b, kernels::Contraction::over(length), {&result, 1, 1}, {}, GetParam());
      EXPECT_EQ(portable::bits<uint32_t>(result), 0u) << length;
    }
}

TEST(ProductLoops, SumsOfNothingArePositiveZero) {
  for (const auto& contraction : {kernels::Contraction::over(0), kernels::Contraction::over_samples(0, 0, 0, 5),
                                  kernels::Contraction::over_samples(5, 0, 5, 0)}) {
    float result = 7;
    kernels::product<float, float>(1, 1, {nullptr, 0, 0, 0}, {nullptr, 0, 0, 0}, contraction, {&result, 1, 1});
    EXPECT_EQ(portable::bits<uint32_t>(result), 0u);
  }
}

/// The bits follow from the contract alone, worked out by hand: 2^24 + 1 is lost in a chain, kept by the tree.
TEST_P(ProductLoops, FollowTheTree) {
  std::vector<float> a(64, 0.0f);
  const std::vector<float> ones(64, 1.0f);
  a[0] = 0x1p24f, a[1] = 1, a[31] = 1, a[32] = 1, a[63] = 1;  // leaves of 32: 2^24, and 1 + 1
  float result = 0;
  kernels::product<float, float>(1, 1, {a.data(), 0, 0, 1}, {ones.data(), 0, 0, 1}, kernels::Contraction::over(64),
                                 {&result, 1, 1}, {}, GetParam());
  EXPECT_EQ(result, 0x1p24f + 2);
}

/// Nodes of shards, joined, are the whole: any cuts, samples or elements.
RC_GTEST_PROP(ProductLoops, NodesOfShardsJoinToTheWhole, (uint32_t seed)) {
  const int64_t m = 5, n = 9;
  const bool over_samples = *rc::gen::arbitrary<bool>();
  const int64_t size = *rc::gen::inRange<int64_t>(2, over_samples ? 40 : 3000), length = over_samples ? 37 : size;
  const auto whole_sum =
      over_samples ? kernels::Contraction::over_samples(size, 0, size, length) : kernels::Contraction::over(size);
  const ProductCase<float, float> whole(m, n, whole_sum, Numbers::kNormal, seed);
  const SumTree tree = over_samples ? SumTree::over_samples(size) : SumTree::over_elements(size);
  SumJoiner<std::vector<float>> joiner(tree);
  const int64_t shards = *rc::gen::inRange<int64_t>(1, 34);
  for (int64_t shard = 0; shard < shards; ++shard) {
    const auto cut = [&](int64_t at) { return std::min(tree.leaf_count() * at / shards * tree.leaf, size); };
    const int64_t first = cut(shard), count = cut(shard + 1) - first;
    const auto part = over_samples ? kernels::Contraction::over_samples(size, first, count, length)
                                   : kernels::Contraction::over(size, first, count);
    auto a = whole.a.factor, b = whole.b.factor;
    a.data += first * (over_samples ? a.sample_stride : a.element_stride);
    b.data += first * (over_samples ? b.sample_stride : b.element_stride);
    const auto nodes = kernels::nodes_of(part);
    std::vector<float> values(nodes.size() * m * n);
    kernels::product<float, float>(m, n, a, b, part, {values.data(), n, m * n});
    for (std::size_t p = 0; p < nodes.size(); ++p)
      joiner.add(nodes[p],
                 std::vector<float>(values.begin() + static_cast<int64_t>(p) * m * n,
                                    values.begin() + static_cast<int64_t>(p + 1) * m * n),
                 [](std::vector<float> left, const std::vector<float>& right) {
                   for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
                   return left;
                 });
  }
  std::vector<float> direct(static_cast<std::size_t>(m * n));
  kernels::product<float, float>(m, n, whole.a.factor, whole.b.factor, whole_sum, {direct.data(), n, m * n});
  RC_ASSERT(joiner.is_complete());
  RC_ASSERT(same_numbers(joiner.parts()[0].value, direct));
}

}  // namespace
}  // namespace lockstep

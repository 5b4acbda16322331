// Matrix products broken on purpose: their plan, their tiles' arithmetic, what is packed. The property that holds for
// the kernels fails for each fault.
#include <gtest/gtest.h>

#include "tests/support/cases/product_cases.h"
#include "tests/support/mutants.h"

#define LOCKSTEP_TILE_TARGET LOCKSTEP_TARGET_BASELINE
#include "runtime/kernels/products/product_kernel.h"
#include "runtime/kernels/products/product_pack.h"

namespace lockstep::testing {
namespace {

using kernels::Baseline;
using kernels::Contraction;
using kernels::Factor;
using kernels::ProductPlan;
using kernels::ProductTiles;
using kernels::TileWork;
using Output = kernels::ProductOutput<float>;
using Vector = Baseline<float>::Vector;

// Arithmetic of tiles.

struct SplitFma : Baseline<float> {
  static Vector fma(const Vector& a, const Vector& b, const Vector& c) { return add(multiply(a, b), c); }
};
struct TwiceRounded : Baseline<float> {
  static Vector fma(const Vector& a, const Vector& b, const Vector& c) {
    return each([&](int i) {
      return static_cast<float>(static_cast<double>(a.lane[i]) * static_cast<double>(b.lane[i]) +
                                static_cast<double>(c.lane[i]));
    });
  }
};
struct FromNegativeZero : Baseline<float> {
  static Vector zero() { return broadcast(-0.0f); }
};
struct JoinsInBfloat16 : Baseline<float> {
  static Vector add(const Vector& a, const Vector& b) {
    return each(
        [&](int i) { return portable::bits<float>(portable::bits<uint32_t>(a.lane[i] + b.lane[i]) & 0xffff0000u); });
  }
};
struct FlushesSums : Baseline<float> {
  static Vector fma(const Vector& a, const Vector& b, const Vector& c) {
    const auto sum = Baseline<float>::fma(a, b, c);
    return each([&](int i) { return std::fpclassify(sum.lane[i]) == FP_SUBNORMAL ? 0.0f : sum.lane[i]; });
  }
};
struct SkipsZeros : Baseline<float> {  ///< 0 * inf is not NaN then
  static Vector fma(const Vector& a, const Vector& b, const Vector& c) {
    return each([&](int i) {
      return a.lane[i] < 0 || a.lane[i] > 0 ? portable::fma(a.lane[i], b.lane[i], c.lane[i]) : c.lane[i];
    });
  }
};

template <class Set>
constexpr auto kCompute = kernels::compute_tile<Set, 8, 2, 4>;

template <class Set>
void last_columns_apart(const TileWork<float>& work) {
  work.columns < 8 ? kCompute<Set>(work) : kCompute<Baseline<float>>(work);
}
template <class Set>
void last_rows_apart(const TileWork<float>& work) {
  work.rows < 4 ? kCompute<Set>(work) : kCompute<Baseline<float>>(work);
}
/// A group is not added to what waits for it.
void unjoined(const TileWork<float>& work) {
  auto changed = work;
  changed.joins = 0;
  kCompute<Baseline<float>>(changed);
}
/// The last leaf of a group is forgotten.
void without_last_leaf(const TileWork<float>& work) {
  auto changed = work;
  std::vector<kernels::LeafStep> leaves(work.leaves, work.leaves + work.leaf_count);
  if (leaves.size() > 1) leaves.back().length = 0;
  changed.leaves = leaves.data();
  kCompute<Baseline<float>>(changed);
}

void packed_in_bfloat16(const kernels::PackWork<float, float>& work) {
  kernels::pack<8>(work);
  for (int64_t position = 0; position < work.count; ++position)
    for (int64_t row = 0; row < work.rows; ++row) {
      float& value = work.to[row / 8 * work.panel_stride + position * work.stride + row % 8];
      value = portable::bits<float>(portable::bits<uint32_t>(value) & 0xffff0000u);
    }
}

ProductTiles<float> tiles_with(void (*compute)(const TileWork<float>&)) {
  return {4, 8, 8, compute, {kernels::pack<4, float, float>, kernels::pack<8, float, float>}, {}};
}

// Plans.

constexpr int64_t kGroupLimit = 512;

using ChangePlan = void (*)(ProductPlan&);

void joined_at_once(ProductPlan& plan) {
  for (const auto& group : plan.groups)
    for (int64_t leaf = 0; leaf < group.leaf_count; ++leaf)
      plan.leaves[static_cast<size_t>(group.first_leaf + leaf)].joins = leaf > 0;
}
void joined_at_the_end(ProductPlan& plan) {
  for (const auto& group : plan.groups) {
    auto* leaves = plan.leaves.data() + group.first_leaf;
    for (int64_t leaf = 0; leaf + 1 < group.leaf_count; ++leaf) leaves[leaf].joins = 0;
    leaves[group.leaf_count - 1].joins = static_cast<int32_t>(group.leaf_count - 1);
    plan.deepest_group = std::max(plan.deepest_group, static_cast<int>(group.leaf_count));
  }
}
void boundary_one_late(ProductPlan& plan) {
  for (const auto& group : plan.groups)
    if (group.leaf_count > 1 && plan.leaves[static_cast<size_t>(group.first_leaf + 1)].length > 1) {
      ++plan.leaves[static_cast<size_t>(group.first_leaf)].length;
      --plan.leaves[static_cast<size_t>(group.first_leaf + 1)].length;
    }
}
void last_element_missing(ProductPlan& plan) {
  if (!plan.leaves.empty() && plan.leaves.back().length > 0) --plan.leaves.back().length;
}
/// Leaves 1 and 2, which are no siblings; siblings exchanged give the same sum.
void groups_exchanged(ProductPlan& plan) {
  for (size_t g = 1; g + 1 < plan.groups.size(); g += 4)
    if (plan.groups[g].length == plan.groups[g + 1].length)
      std::swap(plan.groups[g].position, plan.groups[g + 1].position);
}
void group_twice(ProductPlan& plan) {
  for (size_t g = 1; g < plan.groups.size(); ++g)
    if (plan.groups[g].length <= plan.groups[g - 1].length) plan.groups[g].position = plan.groups[g - 1].position;
}
void unchanged(ProductPlan&) {}

// Whole products.

using Product = void (*)(int64_t, int64_t, const Factor<float>&, const Factor<float>&, const Contraction&,
                         const Output&);

/// The right kernel but for the tiles' arithmetic, and the plan.
template <auto kTileCompute, ChangePlan kChange = unchanged, int64_t kLimit = kGroupLimit>
void product(int64_t m, int64_t n, const Factor<float>& a, const Factor<float>& b, const Contraction& c,
             const Output& out) {
  auto plan = kernels::plan_product(c, kLimit);
  kChange(plan);
  const auto tiles = tiles_with(kTileCompute);
  kernels::product_in_order<float, float>(m, n, a, b, {plan, c.elements}, out, {}, tiles);
}
constexpr auto kRight = kCompute<Baseline<float>>;

void narrow_factor(int64_t m, int64_t n, const Factor<float>& a, const Factor<float>& b, const Contraction& c,
                   const Output& out) {
  auto tiles = tiles_with(kRight);
  tiles.pack.right = packed_in_bfloat16;
  kernels::product_in_order<float, float>(m, n, a, b, {kernels::plan_product(c, kGroupLimit), c.elements}, out, {},
                                          tiles);
}

/// The tree of what is here alone: one node, and zeros for the others.
void one_node_per_rank(int64_t m, int64_t n, const Factor<float>& a, const Factor<float>& b, const Contraction& c,
                       const Output& out) {
  const auto here = c.all_samples == 1 ? Contraction::over(c.elements)
                                       : Contraction::over_samples(c.samples, 0, c.samples, c.elements);
  const auto nodes = static_cast<int64_t>(nodes_of(c).size());
  for (int64_t node = 0; node < nodes; ++node)
    for (int64_t i = 0; i < m; ++i) std::fill_n(out.data + node * out.node_stride + i * out.row_stride, n, 0.0f);
  if (nodes > 0) kernels::product<float, float>(m, n, a, b, here, out);
}

/// Leaves of one element.
void elements_as_samples(int64_t m, int64_t n, const Factor<float>& a, const Factor<float>& b, const Contraction& c,
                         const Output& out) {
  if (c.all_samples != 1 || c.elements != c.all_elements || c.elements < 2)
    return kernels::product<float, float>(m, n, a, b, c, out);
  auto left = a, right = b;
  left.sample_stride = a.element_stride, right.sample_stride = b.element_stride;
  kernels::product<float, float>(m, n, left, right, Contraction::over_samples(c.elements, 0, c.elements, 1), out);
}

/// Samples follow one another in one tree over all elements: a leaf spans two samples.
void samples_in_one_tree(int64_t m, int64_t n, const Factor<float>& a, const Factor<float>& b, const Contraction& c,
                         const Output& out) {
  const bool whole = c.samples == c.all_samples && c.samples > 1 && c.elements > 0;
  const auto flat = whole ? Contraction::over(c.samples * c.elements) : c;
  kernels::product_in_order<float, float>(m, n, a, b, {kernels::plan_product(flat, kGroupLimit), c.elements}, out, {},
                                          tiles_with(kRight));
}

/// Elements from the last to the first, where leaves are full: the same leaves.
void elements_backward(int64_t m, int64_t n, const Factor<float>& a, const Factor<float>& b, const Contraction& c,
                       const Output& out) {
  auto left = a, right = b;
  for (auto* factor : {&left, &right}) {
    factor->data += std::max<int64_t>(c.elements - 1, 0) * factor->element_stride;
    factor->element_stride *= -1;
  }
  kernels::product<float, float>(m, n, left, right, c, out);
}

/// What is behind the last whole group of 16 columns comes from another loop.
void last_columns_as_a_chain(int64_t m, int64_t n, const Factor<float>& a, const Factor<float>& b, const Contraction& c,
                             const Output& out) {
  kernels::product<float, float>(m, n, a, b, c, out);
  const bool whole = c.all_samples == 1 && c.elements == c.all_elements && c.elements > 0;
  for (int64_t i = 0; i < m && whole; ++i)
    for (int64_t j = n / 16 * 16; j < n; ++j) {
      float sum = 0;
      for (int64_t e = 0; e < c.elements; ++e)
        sum = std::fma(a.data[i * a.row_stride + e * a.element_stride], b.data[j * b.row_stride + e * b.element_stride],
                       sum);
      out.data[i * out.row_stride + j] = sum + 0.0f;
    }
}

struct ProductMutant {
  const char* fault;
  Product product;
};

constexpr ProductMutant kRightOnes[] = {
    {"the kernel's parts put together", product<kRight>},
    {"groups of one leaf", product<kRight, unchanged, 0>},
    {"one group", product<kRight, unchanged, int64_t{1} << 40>},
};

constexpr ProductMutant kMutants[] = {
    {"fma split", product<kCompute<SplitFma>>},
    {"fma by way of double", product<kCompute<TwiceRounded>>},
    {"a chain from -0", product<kCompute<FromNegativeZero>>},
    {"joins in bfloat16", product<kCompute<JoinsInBfloat16>>},
    {"subnormal sums flushed", product<kCompute<FlushesSums>>},
    {"zeros skipped", product<kCompute<SkipsZeros>>},
    {"fma split in the last columns", product<last_columns_apart<SplitFma>>},
    {"fma split in the last rows", product<last_rows_apart<SplitFma>>},
    {"-0 in the last columns", product<last_columns_apart<FromNegativeZero>>},
    {"groups not joined", product<unjoined, unchanged, 0>},
    {"the last leaf of a group forgotten", product<without_last_leaf>},
    {"a factor rounded to bfloat16", narrow_factor},
    {"leaves joined as they come", product<kRight, joined_at_once>},
    {"leaves joined at the end", product<kRight, joined_at_the_end>},
    {"a leaf's boundary one late", product<kRight, boundary_one_late>},
    {"the last element missing", product<kRight, last_element_missing>},
    {"leaves exchanged", product<kRight, groups_exchanged, 0>},
    {"a leaf twice, another never", product<kRight, group_twice, 0>},
    {"one node per rank", one_node_per_rank},
    {"elements taken for samples", elements_as_samples},
    {"samples in one tree", samples_in_one_tree},
    {"elements backward", elements_backward},
    {"the last columns as a chain", last_columns_as_a_chain},
};

TEST(ProductMutants, TheUnbrokenPartsPass) {
  for (const auto& right : kRightOnes)
    EXPECT_EQ(failure_of(right.fault, 100, [&] { product_equals_oracle<float, float>(right.product); }), "")
        << right.fault;
}

TEST(ProductMutants, AreNoticed) {
  for (const auto& mutant : kMutants)
    expect_noticed(mutant.fault, [&] { product_equals_oracle<float, float>(mutant.product); });
}

}  // namespace
}  // namespace lockstep::testing

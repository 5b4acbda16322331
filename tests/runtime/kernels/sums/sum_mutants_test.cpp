// Ordered sums broken on purpose: the property that holds for the loops fails for each fault.
#include <gtest/gtest.h>

#include "runtime/kernels/simd/lanes.h"
#include "tests/support/cases/sum_cases.h"
#include "tests/support/mutants.h"

namespace lockstep::testing {
namespace {

using kernels::sum_of_lanes;
using kernels::SumLeaf;
using kernels::loops::OrderedSum;
using Operands = SumOperands<float>;

/// The right sum of other elements: element i of a row becomes that at `place(i, count)`.
template <auto kPlace>
void of_other_places(const Operands& o, float* out) {
  const auto& sum = o.sum;
  std::vector<float> x(static_cast<size_t>(sum.outer * sum.count * sum.inner));
  for (int64_t r = 0; r < sum.outer; ++r)
    for (int64_t i = 0; i < sum.count; ++i)
      for (int64_t c = 0; c < sum.inner; ++c)
        x[static_cast<size_t>((r * sum.count + i) * sum.inner + c)] =
            o.x[(r * sum.count + kPlace(i, sum)) * sum.inner + c];
  kernels::loops::ordered_sum<float>(sum, x.data(), out);
}

/// Leaves 1 and 2 of what is here, where they are full; leaves 0 and 1 are siblings, whose order no bit shows.
int64_t leaves_exchanged(int64_t i, const OrderedSum& sum) {
  const int64_t leaf = sum.tree.leaf;
  if (sum.count < 3 * leaf || i < leaf || i >= 3 * leaf) return i;
  return i < 2 * leaf ? i + leaf : i - leaf;
}
int64_t one_further(int64_t i, const OrderedSum& sum) { return (i + 1) % sum.count; }
int64_t from_the_last(int64_t i, const OrderedSum& sum) { return sum.count - 1 - i; }
int64_t leaf_reversed(int64_t i, const OrderedSum& sum) {
  const int64_t start = i / sum.tree.leaf * sum.tree.leaf, end = std::min(start + sum.tree.leaf, sum.count);
  return start + end - 1 - i;
}
int64_t last_twice(int64_t i, const OrderedSum& sum) { return i + 2 == sum.count ? i + 1 : i; }

/// The right kernel with another tree, where all of the sum is here.
template <auto kChange>
void along_another_tree(const Operands& o, float* out) {
  auto sum = o.sum;
  if (sum.first == 0 && sum.count == sum.tree.size && sum.count > 0) sum.tree = kChange(sum.tree);
  kernels::loops::ordered_sum<float>(sum, o.x, out);
}
SumTree longer_leaves(const SumTree& tree) { return {tree.size, tree.leaf + 1}; }
SumTree one_leaf(const SumTree& tree) { return {tree.size, tree.size}; }
SumTree half_leaves(const SumTree& tree) { return {tree.size, std::max<int64_t>(tree.leaf / 2, 1)}; }
SumTree double_leaves(const SumTree& tree) { return {tree.size, 2 * tree.leaf}; }

/// Every node by its own leaf(first element, end, row, column) and join(leaves).
template <class Leaf, class Join>
void by_leaves(const Operands& o, float* out, const Leaf& leaf, const Join& join) {
  for (const auto& node : cover(o.sum.tree, o.sum.first, o.sum.count))
    for (int64_t row = 0; row < o.sum.outer; ++row)
      for (int64_t column = 0; column < o.sum.inner; ++column) {
        std::vector<float> leaves;
        const auto [start, end] = elements_of(o.sum.tree, node);
        for (int64_t first = start; first < end || leaves.empty(); first += o.sum.tree.leaf)
          leaves.push_back(leaf(first - o.sum.first, std::min(first + o.sum.tree.leaf, end) - o.sum.first,
                                [&](int64_t i) { return o.x[(row * o.sum.count + i) * o.sum.inner + column]; }));
        *out++ = join(leaves);
      }
}
const auto kChain = [](int64_t start, int64_t end, const auto& x) {
  float sum = 0;
  for (int64_t i = start; i < end; ++i) sum += x(i);
  return sum;
};
const auto kLanes = [](int64_t start, int64_t end, const auto& x) {
  return kernels::lanes_oracle<float>(start, end, [&](float sum, int64_t i) { return sum + x(i); });
};
const auto kPairs = [](std::vector<float> leaves) {
  for (size_t step = 1; step < leaves.size(); step *= 2)
    for (size_t left = 0; left + step < leaves.size(); left += 2 * step) leaves[left] += leaves[left + step];
  return leaves[0];
};

void in_plain_words(const Operands& o, float* out) { by_leaves(o, out, kLanes, kPairs); }
void in_one_chain(const Operands& o, float* out) { by_leaves(o, out, kChain, kPairs); }
void joined_from_the_left(const Operands& o, float* out) {
  by_leaves(o, out, kLanes, [](const std::vector<float>& leaves) {
    float sum = leaves[0];
    for (size_t i = 1; i < leaves.size(); ++i) sum += leaves[i];
    return sum;
  });
}
void joined_from_the_right(const Operands& o, float* out) {
  by_leaves(o, out, kLanes, [](const std::vector<float>& leaves) {
    float sum = leaves.back();
    for (size_t i = leaves.size() - 1; i-- > 0;) sum = leaves[i] + sum;
    return sum;
  });
}
/// Leaf i with leaf i + half of them, as reductions of vectors do.
void joined_by_halves(const Operands& o, float* out) {
  by_leaves(o, out, kLanes, [](std::vector<float> leaves) {
    for (size_t size = leaves.size(); size > 1; size = (size + 1) / 2)
      for (size_t i = 0; i < size / 2; ++i) leaves[i] += leaves[i + (size + 1) / 2];
    return leaves[0];
  });
}
void from_the_first(const Operands& o, float* out) {
  by_leaves(
      o, out,
      [](int64_t start, int64_t end, const auto& x) {
        float lanes[16];
        for (int64_t i = start; i < start + 16; ++i) lanes[i - start] = i < end ? x(i) : -0.0f;
        for (int64_t i = start + 16; i < end; ++i) lanes[(i - start) % 16] += x(i);
        return sum_of_lanes<float>(static_cast<const float*>(lanes));
      },
      kPairs);
}
/// Lanes in a leaf that are added from the first to the last.
template <int kAccumulators>
void by_accumulators(const Operands& o, float* out) {
  by_leaves(
      o, out,
      [](int64_t start, int64_t end, const auto& x) {
        float sums[kAccumulators] = {}, sum = 0;
        for (int64_t i = start; i < end; ++i) sums[(i - start) % kAccumulators] += x(i);
        for (const float part : sums) sum += part;
        return sum;
      },
      kPairs);
}
/// Lanes 1 apart are added first.
void neighbours_first(const Operands& o, float* out) {
  by_leaves(
      o, out,
      [](int64_t start, int64_t end, const auto& x) {
        float lanes[16] = {};
        for (int64_t i = start; i < end; ++i) lanes[(i - start) % 16] += x(i);
        for (int apart = 1; apart < 16; apart *= 2)
          for (int lane = 0; lane < 16; lane += 2 * apart) lanes[lane] += lanes[lane + apart];
        return lanes[0];
      },
      kPairs);
}
/// What is behind the last whole group of 16 comes from a loop of its own.
void tail_apart(const Operands& o, float* out) {
  by_leaves(
      o, out,
      [](int64_t start, int64_t end, const auto& x) {
        const int64_t whole = start + (end - start) / 16 * 16;
        return kLanes(start, whole, x) + kChain(whole, end, x);
      },
      kPairs);
}
void in_double(const Operands& o, float* out) {
  by_leaves(
      o, out,
      [](int64_t start, int64_t end, const auto& x) {
        return static_cast<float>(kernels::lanes_oracle<double>(
            start, end, [&](double sum, int64_t i) { return sum + static_cast<double>(x(i)); }));
      },
      kPairs);
}
void compensated(const Operands& o, float* out) {
  by_leaves(
      o, out,
      [](int64_t start, int64_t end, const auto& x) {
        float sum = 0, rest = 0;
        for (int64_t i = start; i < end; ++i) {
          const float value = x(i) - rest, next = sum + value;
          rest = (next - sum) - value;
          sum = next;
        }
        return sum;
      },
      kPairs);
}
/// The mean's division before the sum, undone.
void divided_first(const Operands& o, float* out) {
  const auto count = static_cast<float>(std::max<int64_t>(o.sum.count, 1));
  by_leaves(
      o, out,
      [&](int64_t start, int64_t end, const auto& x) {
        return kLanes(start, end, [&](int64_t i) { return x(i) / count; });
      },
      [&](const std::vector<float>& leaves) { return kPairs(leaves) * count; });
}

void exponentials_of_libm(const Operands& o, float* out) {
  kernels::columns_oracle(o.sum, out, [&](float sum, int64_t, int64_t i, int64_t outer) {
    return sum + std::exp(o.x[i] - o.shift[outer]);
  });
}
void exponentials_scaled_later(const Operands& o, float* out) {
  kernels::columns_oracle(o.sum, out, [&](float sum, int64_t, int64_t i, int64_t outer) {
    return sum + elementary::normal_exp(o.x[i]) * elementary::normal_exp(-o.shift[outer]);
  });
}
void shift_of_the_row_before(const Operands& o, float* out) {
  kernels::columns_oracle(o.sum, out, [&](float sum, int64_t, int64_t i, int64_t outer) {
    return sum + elementary::normal_exp(o.x[i] - o.shift[std::max<int64_t>(outer - 1, 0)]);
  });
}
void norm_with_split_fma(const Operands& o, float* out) {
  kernels::columns_oracle<SumLeaf::kChain>(o.sum, out, [&](float sum, int64_t row, int64_t i, int64_t) {
    const float product = o.g[i] * (o.x[i] * o.r[row]);
    return sum + product;
  });
}
void norm_reassociated(const Operands& o, float* out) {
  kernels::columns_oracle<SumLeaf::kChain>(
      o.sum, out, [&](float sum, int64_t row, int64_t i, int64_t) { return std::fma(o.g[i] * o.x[i], o.r[row], sum); });
}

using Kernel = void (*)(const Operands&, float*);
struct SumMutant {
  const char* fault;
  Kernel kernel;
  bool rows = false;
  Kernel oracle = plain_sum<float>;
};

constexpr SumMutant kMutants[] = {
    {"leaves exchanged", of_other_places<leaves_exchanged>},
    {"elements one further", of_other_places<one_further>},
    {"elements from the last", of_other_places<from_the_last>},
    {"a leaf from its last element", of_other_places<leaf_reversed>},
    {"the last element twice", of_other_places<last_twice>},
    {"leaves one longer", along_another_tree<longer_leaves>},
    {"one leaf", along_another_tree<one_leaf>},
    {"half leaves", along_another_tree<half_leaves>},
    {"double leaves", along_another_tree<double_leaves>},
    {"joined from the left", joined_from_the_left},
    {"joined from the right", joined_from_the_right},
    {"joined by halves", joined_by_halves},
    {"from the first element", from_the_first, true},
    {"one chain", in_one_chain},
    {"8 lanes", by_accumulators<8>},
    {"lanes from the first", by_accumulators<16>, true},
    {"lanes of neighbours", neighbours_first},
    {"the tail apart", tail_apart, true},
    {"leaves in double", in_double},
    {"compensated leaves", compensated},
    {"divided first", divided_first},
    {"exponentials of libm", exponentials_of_libm, true, plain_exponentials<float>},
    {"exponentials scaled later", exponentials_scaled_later, true, plain_exponentials<float>},
    {"the shift of the row before", shift_of_the_row_before, true, plain_exponentials<float>},
    {"fma split", norm_with_split_fma, false, plain_norm_gradient<float>},
    {"products reassociated", norm_reassociated, false, plain_norm_gradient<float>},
};

TEST(SumMutants, AreNoticed) {
  EXPECT_EQ(
      failure_of("leaves by hand", 100, [] { sum_equals_oracle<float>(false, in_plain_words, plain_sum<float>); }), "");
  for (const auto& mutant : kMutants)
    expect_noticed(mutant.fault, [&] { sum_equals_oracle<float>(mutant.rows, mutant.kernel, mutant.oracle); });
}

}  // namespace
}  // namespace lockstep::testing

#pragma once
#include "runtime/kernels/sums/ordered_sum_oracle.h"
#include "tests/support/cases/product_cases.h"

/// Random ordered sums for comparing kernels with their oracles.
namespace lockstep::testing {

/// The operands of any ordered sum; each kind of sum reads its own.
template <class T>
struct SumOperands {
  kernels::loops::OrderedSum sum;
  const T *x, *g;      ///< [outer, count, inner]
  const T *shift, *r;  ///< [outer], [outer, count]
};

/// Up to a few leaves, any number, and leaves of 32 alone.
inline SumTree any_tree_over_elements() {
  return SumTree::over_elements(*rc::gen::weightedOneOf<int64_t>(
      {{2, rc::gen::inRange<int64_t>(0, 140)},
       {2, rc::gen::inRange<int64_t>(0, 5000)},
       {1, rc::gen::map(rc::gen::inRange(5, 12), [](int power) { return int64_t{1} << power; })}}));
}

/// A leaf range of a tree over elements or samples. Rows are added 16 at a time.
inline kernels::loops::OrderedSum any_ordered_sum(bool rows) {
  const SumTree tree =
      *rc::gen::arbitrary<bool>() ? SumTree::over_samples(*rc::gen::inRange<int64_t>(0, 60)) : any_tree_over_elements();
  const auto [from, to] = leaf_range(tree);
  const int64_t inner = rows ? 1
                             : *rc::gen::weightedOneOf<int64_t>(
                                   {{3, rc::gen::inRange<int64_t>(1, 20)}, {1, rc::gen::inRange<int64_t>(250, 270)}});
  const auto few = rc::gen::inRange<int64_t>(0, 4);
  const int64_t outer =
      rows ? *rc::gen::weightedOneOf<int64_t>({{2, few}, {1, rc::gen::inRange<int64_t>(14, 36)}}) : *few;
  return {tree, from, outer, to - from, inner};
}

/// Memory of its own that begins up to 16 elements past where the allocator put it.
template <class T>
struct AnywhereInMemory {
  AnywhereInMemory(int64_t count, Numbers kind, std::mt19937& random)
      : shift(random() % 17), values(shift + static_cast<size_t>(count)) {
    for (auto& value : values) value = number<T>(random, kind);
  }
  T* data() { return values.data() + shift; }
  const T* data() const { return values.data() + shift; }

  size_t shift;
  std::vector<T> values;
};

template <class T>
struct SumCase {
  static SumCase any(bool rows) {
    return SumCase(any_ordered_sum(rows),
                   *rc::gen::element(Numbers::kNormal, Numbers::kTiny, Numbers::kSpecial, Numbers::kMiddle,
                                     Numbers::kNegativeZero),
                   *rc::gen::arbitrary<uint32_t>());
  }

  SumCase(const kernels::loops::OrderedSum& which, Numbers kind, uint32_t seed)
      : sum(which),
        random(seed),
        x(sum.outer * sum.count * sum.inner, kind, random),
        g(sum.outer * sum.count * sum.inner, kind, random),
        shift(sum.outer, kind, random),
        r(sum.outer * sum.count, kind, random) {}

  SumOperands<T> operands() const { return {sum, x.data(), g.data(), shift.data(), r.data()}; }

  /// What a kernel writes, and one element behind it that it must not.
  template <class Kernel>
  std::vector<T> run(const Kernel& kernel) const {
    const auto nodes = static_cast<int64_t>(cover(sum.tree, sum.first, sum.count).size());
    std::vector<T> out(static_cast<size_t>(nodes * sum.outer * sum.inner) + 1, T(7));
    kernel(operands(), out.data());
    return out;
  }

  kernels::loops::OrderedSum sum;
  std::mt19937 random;
  AnywhereInMemory<T> x, g, shift, r;
};

/// Property: the kernel gives the oracle's bits, whatever is summed, of which the kernel's operands are a part.
template <class T, class Kernel, class Oracle>
void sum_equals_oracle(bool rows, const Kernel& kernel, const Oracle& oracle) {
  const auto sum = SumCase<T>::any(rows);
  RC_ASSERT(same_numbers(sum.run(kernel), sum.run(oracle)));
}

// The oracles of each kind of sum.

template <class T>
void plain_sum(const SumOperands<T>& o, T* out) {
  kernels::ordered_sum_oracle<T>(o.sum, o.x, out);
}
template <class T>
void plain_exponentials(const SumOperands<T>& o, T* out) {
  kernels::exponential_sum_oracle<T>(o.sum, o.x, o.shift, out);
}
template <class T>
void plain_norm_gradient(const SumOperands<T>& o, T* out) {
  kernels::norm_gradient_oracle<T>(o.sum, o.g, o.x, o.r, out);
}

/// A random table, some of whose positions are rows of other ranks, and gradients for it.
template <class T>
struct TableCase {
  static TableCase any() {
    const auto samples = SumTree::over_samples(*rc::gen::inRange<int64_t>(0, 12));
    const auto [from, to] = leaf_range(samples);
    const auto length = *rc::gen::weightedOneOf<int64_t>(
        {{1, rc::gen::inRange<int64_t>(1, 40)}, {1, rc::gen::inRange<int64_t>(60, 400)}});
    const int64_t missing = to > from ? *rc::gen::inRange<int64_t>(0, length) : 0;  // the last sample may be short
    return TableCase(
        {samples, from, to - from, length, *rc::gen::inRange<int64_t>(1, 20), (to - from) * length - missing,
         *rc::gen::inRange<int64_t>(0, 3), *rc::gen::inRange<int64_t>(0, 6)},
        *rc::gen::element(Numbers::kNormal, Numbers::kTiny, Numbers::kSpecial, Numbers::kNegativeZero),
        *rc::gen::arbitrary<uint32_t>());
  }

  TableCase(const kernels::loops::TableGradient& which, Numbers kind, uint32_t seed)
      : shape(which), random(seed), gradient(shape.count * shape.width, kind, random) {
    for (int64_t i = 0; i < shape.count; ++i) tokens.push_back(static_cast<int64_t>(random() % 8) - 1);
  }

  template <class Kernel>
  std::vector<T> run(const Kernel& kernel) const {
    const auto nodes = static_cast<int64_t>(cover(shape.samples, shape.first_sample, shape.sample_count).size());
    std::vector<T> out(static_cast<size_t>(nodes * shape.rows * shape.width) + 1, T(7));
    kernel(shape, tokens.data(), gradient.data(), out.data());
    return out;
  }

  kernels::loops::TableGradient shape;
  std::mt19937 random;
  std::vector<int64_t> tokens;
  AnywhereInMemory<T> gradient;
};

/// Property: the kernel gives the oracle's bits, whatever the table.
template <class T, class Kernel>
void table_equals_oracle(const Kernel& kernel) {
  const auto table = TableCase<T>::any();
  RC_ASSERT(same_numbers(table.run(kernel), table.run(kernels::table_gradient_oracle<T>)));
}

}  // namespace lockstep::testing

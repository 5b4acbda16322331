#include "runtime/kernels/sums/ordered_sum_loops.h"

#include <algorithm>
#include <vector>

#include "core/elementary/elementary.h"
#include "runtime/kernels/simd/best_instruction_set.h"
#include "runtime/kernels/simd/rows.h"
#include "runtime/kernels/sums/row_block_sum.h"

namespace lockstep::kernels::loops {
namespace {

/// Columns that are summed side by side: the leaves of a node stay in the cache.
constexpr int64_t kColumns = 256;

/// A node of `count` rows, `width` apart.
template <class T>
struct SumRows {
  LOCKSTEP_PORTABLE static void run(NodeWork work, Rows rows, const T* x, T* __restrict out) {
    const int64_t whole = work.leaf > 1 && work.leaves > 0 ? rows.count / kSumLanes * kSumLanes : 0;
    const int height = RowBlock<T>::height_over(work.leaves);
    int64_t r = 0;
    for (; r < whole; r += kSumLanes, x += kSumLanes * rows.width)
      RowBlock<T>{work, x, rows.width, (rows.count - r - 1) * rows.width + work.elements, height}.sums(out + r);
    for (; r < rows.count; ++r, x += rows.width)
      out[r] = sum_row<T>(
          work, [x](int64_t i) __attribute__((always_inline)) { return x[i]; });
  }
};
template <class T>
struct ExponentialRows {
  LOCKSTEP_PORTABLE static void run(NodeWork work, Rows rows, const T* x, const T* shift, T* __restrict out) {
    for (int64_t r = 0; r < rows.count; ++r, x += rows.width) {
      const T s = shift[r];
      out[r] = sum_row<T>(
          work, [ x, s ](int64_t i) __attribute__((always_inline)) { return elementary::normal_exp(x[i] - s); });
    }
  }
};

/// Columns side by side. Behind the leaves' sums there is room for the 16 lanes of a leaf.
template <class T>
struct SumColumns {
  LOCKSTEP_PORTABLE static void run(NodeWork work, const T* x, T* sums) {
    for (int64_t l = 0; l < work.leaves; ++l) {
      const int64_t left = work.elements - l * work.leaf, count = left < work.leaf ? left : work.leaf;
      const T* from = x + l * work.leaf * work.stride;
      T *to = sums + l * work.columns, *lanes = sums + work.leaves * work.columns;
      if (count == 2 * kSumLanes)
        two_a_lane(work, from, lanes, to);
      else
        any_number(work, count, from, lanes, to);
    }
    join(work, sums);
  }

 private:
  /// The usual leaf. Four rows at a time: a processor follows few, and rows a power of two apart share a place in its
  /// cache.
  LOCKSTEP_PORTABLE static void two_a_lane(const NodeWork& work, const T* x, T* __restrict lanes, T* __restrict sum) {
    constexpr int kHalf = kSumLanes / 2;
    const int64_t stride = work.stride, columns = work.columns;
    for (int i = 0; i < kHalf; ++i) {
      const T *a = x + i * stride, *b = a + kSumLanes * stride, *c = a + kHalf * stride, *d = b + kHalf * stride;
      T* __restrict pair = lanes + i * columns;
      for (int64_t k = 0; k < columns; ++k) pair[k] = (a[k] + b[k]) + (c[k] + d[k]);
    }
    for (int64_t k = 0; k < columns; ++k) {
      const T* first = lanes + k;
      const auto pair = [=](int i) __attribute__((always_inline)) { return first[i * columns]; };
      sum[k] = sum_over_lanes<1, kHalf>(pair) + T(0);
    }
  }
  LOCKSTEP_PORTABLE static void any_number(const NodeWork& work, int64_t count, const T* x, T* __restrict lanes,
                                           T* __restrict sum) {
    const int64_t columns = work.columns;
    for (int64_t i = 0; i < kSumLanes * columns; ++i) lanes[i] = T(0);
    for (int64_t i = 0; i < count; ++i) {
      T* lane = lanes + i % kSumLanes * columns;
      for (int64_t c = 0; c < columns; ++c) lane[c] += x[i * work.stride + c];
    }
    for (int64_t c = 0; c < columns; ++c) {
      const T* first = lanes + c;
      sum[c] = sum_over_lanes([=](int i) __attribute__((always_inline)) { return first[i * columns]; });
    }
  }
};

template <class T>
struct NormGradientColumns {
  LOCKSTEP_PORTABLE static void run(NodeWork work, const T* g, const T* x, const T* r, T* sums) {
    for (int64_t l = 0; l < work.leaves; ++l) {
      T* sum = sums + l * work.columns;
      for (int64_t c = 0; c < work.columns; ++c) sum[c] = T(0);
      const int64_t end = l * work.leaf + work.leaf < work.elements ? l * work.leaf + work.leaf : work.elements;
      for (int64_t i = l * work.leaf; i < end; ++i)
        for (int64_t c = 0; c < work.columns; ++c)
          sum[c] = portable::fma(g[i * work.stride + c], x[i * work.stride + c] * r[i], sum[c]);
      for (int64_t c = 0; c < work.columns; ++c) sum[c] += T(0);
    }
    join(work, sums);
  }
};

/// Calls visit(node number, first element relative to `first`, work without columns) for every node.
template <class Visit>
void for_each_node(const OrderedSum& sum, const Visit& visit) {
  const auto nodes = cover(sum.tree, sum.first, sum.count);
  for (size_t n = 0; n < nodes.size(); ++n) {
    const auto range = elements_of(sum.tree, nodes[n]);
    const int64_t elements = range.end - range.start;
    visit(static_cast<int64_t>(n), range.start - sum.first,
          NodeWork{sum.tree.leaf, (elements + sum.tree.leaf - 1) / sum.tree.leaf, elements, 1, 1});
  }
}

/// Every node of whole rows: run(work, rows, where the node's elements begin, out).
template <class T, class Run>
void by_rows(const OrderedSum& sum, T* out, const Run& run) {
  for_each_node(sum, [&](int64_t node, int64_t start, const NodeWork& work) {
    run(work, Rows{sum.outer, sum.count}, start, out + node * sum.outer);
  });
}

/// Blocks of columns of every node of every outer row: run(work, outer row * count + element, offset in x, sums), whose
/// first `columns` sums are the result; there is room for those of its leaves and for 16 more.
template <class T, class Run>
void by_blocks(const OrderedSum& sum, T* out, const Run& run) {
  std::vector<T> sums;
  for_each_node(sum, [&](int64_t node, int64_t start, NodeWork work) {
    work.stride = sum.inner;
    for (int64_t o = 0; o < sum.outer; ++o)
      for (int64_t c = 0; c < sum.inner; c += kColumns) {
        work.columns = std::min(kColumns, sum.inner - c);
        sums.resize(static_cast<size_t>((work.leaves + kSumLanes) * work.columns));
        run(work, o * sum.count + start, (o * sum.count + start) * sum.inner + c, sums.data());
        std::copy_n(sums.data(), work.columns, out + (node * sum.outer + o) * sum.inner + c);
      }
  });
}

/// An empty tensor has no address to count from.
template <class T>
const T* moved(const T* x, int64_t offset) {
  return x == nullptr ? x : x + offset;
}

}  // namespace

template <class T>
void ordered_sum(const OrderedSum& sum, const T* x, T* out, InstructionSet set) {
  if (sum.inner == 1)
    return by_rows(sum, out, [&](const NodeWork& work, Rows rows, int64_t start, T* to) {
      on_instruction_set<SumRows<T>>(set, work, rows, moved(x, start), to);
    });
  by_blocks(sum, out, [&](const NodeWork& work, int64_t, int64_t offset, T* sums) {
    on_instruction_set<SumColumns<T>>(set, work, moved(x, offset), sums);
  });
}

template <class T>
void ordered_exponential_sum(const OrderedSum& sum, const T* x, const T* shift, T* out, InstructionSet set) {
  by_rows(sum, out, [&](const NodeWork& work, Rows rows, int64_t start, T* to) {
    on_instruction_set<ExponentialRows<T>>(set, work, rows, moved(x, start), shift, to);
  });
}

template <class T>
void ordered_norm_gradient(const OrderedSum& sum, const T* g, const T* x, const T* r, T* out, InstructionSet set) {
  by_blocks(sum, out, [&](const NodeWork& work, int64_t element, int64_t offset, T* sums) {
    on_instruction_set<NormGradientColumns<T>>(set, work, moved(g, offset), moved(x, offset), moved(r, element), sums);
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                     \
  template void ordered_sum(const OrderedSum&, const T*, T*, InstructionSet);                       \
  template void ordered_exponential_sum(const OrderedSum&, const T*, const T*, T*, InstructionSet); \
  template void ordered_norm_gradient(const OrderedSum&, const T*, const T*, const T*, T*, InstructionSet)
LOCKSTEP_INSTANTIATE(float);
LOCKSTEP_INSTANTIATE(double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::loops

#include "runtime/kernels/ordered_sum_loops.h"

#include <algorithm>
#include <vector>

#include "core/elementary.h"
#include "runtime/kernels/best_instruction_set.h"
#include "runtime/kernels/node_sum.h"

namespace lockstep::kernels::loops {
namespace {

/// Columns that are summed side by side: the leaves of a node stay in the cache.
constexpr int64_t kColumns = 256;

template <class T>
struct SumColumns {
  LOCKSTEP_PORTABLE static void run(NodeWork work, const T* x, T* sums) {
    for (int64_t l = 0; l < work.leaves; ++l) {
      T* sum = sums + l * work.columns;
      for (int64_t c = 0; c < work.columns; ++c) sum[c] = T(0);
      const int64_t end = l * work.leaf + work.leaf < work.elements ? l * work.leaf + work.leaf : work.elements;
      for (int64_t i = l * work.leaf; i < end; ++i)
        for (int64_t c = 0; c < work.columns; ++c) sum[c] += x[i * work.stride + c];
      for (int64_t c = 0; c < work.columns; ++c) sum[c] += T(0);
    }
    join(work, sums);
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

template <class T>
struct ExponentialRow {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* x, T shift, T* __restrict out) {
    for (int64_t i = 0; i < count; ++i) out[i] = elementary::exp(x[i] - shift);
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

/// Blocks of columns of every node of every outer row: run(work, offset in a row, offset in x, sums), whose first
/// `columns` sums are the result.
template <class T, class Run>
void by_blocks(const OrderedSum& sum, T* out, const Run& run) {
  std::vector<T> sums;
  for_each_node(sum, [&](int64_t node, int64_t start, NodeWork work) {
    work.stride = sum.inner;
    for (int64_t o = 0; o < sum.outer; ++o)
      for (int64_t c = 0; c < sum.inner; c += kColumns) {
        work.columns = std::min(kColumns, sum.inner - c);
        sums.resize(static_cast<size_t>(work.leaves * work.columns));
        run(work, o * sum.count + start, (o * sum.count + start) * sum.inner + c, sums.data());
        std::copy_n(sums.data(), work.columns, out + (node * sum.outer + o) * sum.inner + c);
      }
  });
}

}  // namespace

template <class T>
void ordered_sum(const OrderedSum& sum, const T* x, T* out, InstructionSet set) {
  by_blocks(sum, out, [&](const NodeWork& work, int64_t, int64_t offset, T* sums) {
    if (sum.inner == 1)
      on_instruction_set<SumRow<T>>(set, work, x + offset, sums);
    else
      on_instruction_set<SumColumns<T>>(set, work, x + offset, sums);
  });
}

template <class T>
void ordered_exponential_sum(const OrderedSum& sum, const T* x, const T* shift, T* out, InstructionSet set) {
  std::vector<T> row(static_cast<size_t>(sum.count)), sums;
  for (int64_t o = 0; o < sum.outer; ++o) {
    on_instruction_set<ExponentialRow<T>>(set, sum.count, x + o * sum.count, shift[o], row.data());
    for_each_node(sum, [&](int64_t node, int64_t start, const NodeWork& work) {
      sums.resize(static_cast<size_t>(work.leaves));
      on_instruction_set<SumRow<T>>(set, work, static_cast<const T*>(row.data()) + start, sums.data());
      out[node * sum.outer + o] = sums[0];
    });
  }
}

template <class T>
void ordered_norm_gradient(const OrderedSum& sum, const T* g, const T* x, const T* r, T* out, InstructionSet set) {
  by_blocks(sum, out, [&](const NodeWork& work, int64_t element, int64_t offset, T* sums) {
    on_instruction_set<NormGradientColumns<T>>(set, work, g + offset, x + offset, r + element, sums);
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

#pragma once
#include <cstdint>

#include "core/portable.h"

/// One node of the tree (sum_tree.h) on raw memory: its leaves' chains, then their pairwise sums.
namespace lockstep::kernels::loops {

/// One node over a block of columns: elements of the row begin at x, `stride` apart.
struct NodeWork {
  int64_t leaf, leaves, elements;  ///< per leaf, in the node, and in the node altogether
  int64_t columns, stride;
};

/// Joins the leaves' sums [leaves, columns] pairwise, level by level, into the first.
template <class T>
LOCKSTEP_PORTABLE void join(const NodeWork& work, T* __restrict sums) {
  for (int64_t step = 1; step < work.leaves; step *= 2)
    for (int64_t left = 0; left + step < work.leaves; left += 2 * step) {
      T *a = sums + left * work.columns, *b = sums + (left + step) * work.columns;
      for (int64_t c = 0; c < work.columns; ++c) a[c] = a[c] + b[c];
    }
}

/// One column: whole leaves side by side, so that their chains overlap.
template <class T>
struct SumRow {
  static constexpr int64_t kLeaves = 16, kCacheLine = 64 / sizeof(T);
  LOCKSTEP_PORTABLE static void run(NodeWork work, const T* x, T* sums) {
    int64_t l = 0;
    for (; l + kLeaves <= work.leaves && (l + kLeaves) * work.leaf <= work.elements; l += kLeaves) {
      T sum[kLeaves] = {};
      for (int64_t i = 0; i < work.leaf; ++i) {
        if (i % kCacheLine == 0) prefetch(x + (l + kLeaves) * work.leaf + i * kLeaves);
        for (int64_t lane = 0; lane < kLeaves; ++lane) sum[lane] += x[(l + lane) * work.leaf + i];
      }
      for (int64_t lane = 0; lane < kLeaves; ++lane) sums[l + lane] = sum[lane] + T(0);
    }
    for (; l < work.leaves; ++l) {
      T sum = 0;
      const int64_t end = l * work.leaf + work.leaf < work.elements ? l * work.leaf + work.leaf : work.elements;
      for (int64_t i = l * work.leaf; i < end; ++i) sum += x[i];
      sums[l] = sum + T(0);
    }
    join(work, sums);
  }

 private:
  /// Lines of the leaves that come next: hardware does not guess them from so many chains at once.
  LOCKSTEP_PORTABLE static void prefetch(const T* next) {
    for (int64_t line = 0; line < kLeaves; ++line) __builtin_prefetch(next + line * kCacheLine);
  }
};

}  // namespace lockstep::kernels::loops

#pragma once
#include <cstdint>

#include "core/portable.h"
#include "runtime/kernels/lanes.h"

/// One node of the tree (sum_tree.h) on raw memory: its leaves, then their pairwise sums. A leaf is the sum of its 16
/// lanes (lanes.h).
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

/// Elements of a row: element(0), element(1) ...
template <class T, class Element>
struct RowElements {
  const Element& element;
  int64_t count;

  /// Of the leaf that begins at an element. What is absent is +0, which changes no sum.
  LOCKSTEP_PORTABLE void lanes_of(int64_t first, int64_t leaf, Lanes<T>& out) const {
    out = Lanes<T>{};
    add_to_lanes<T>(
        count - first < leaf ? count - first : leaf,
        [ this, first ](int64_t i) __attribute__((always_inline)) { return element(first + i); }, out);
  }
  /// The usual leaves, all of them there: a constant length, and one pair of vectors after the other is joined.
  template <int kLeaves>
  LOCKSTEP_PORTABLE void sums_of_leaves(int64_t first, Lanes<T>& out) const {
    const auto from = [this](int64_t start) __attribute__((always_inline)) {
      return [ this, start ](int64_t i) __attribute__((always_inline)) { return element(start + i); };
    };
    if constexpr (kLeaves == 1) {
      Lanes<T> second;
      load_lanes<T>(from(first), out);
      load_lanes<T>(from(first + kSumLanes), second);
      out.add(second);
    } else {
      Lanes<T> right;
      sums_of_leaves<kLeaves / 2>(first, out);
      sums_of_leaves<kLeaves / 2>(first + kLeaves / 2 * kUsualLeaf, right);
      join_lanes<kSumLanes / kLeaves>(out, right, out);
    }
  }
  /// The sums of 16 leaves.
  LOCKSTEP_PORTABLE void sums_of(int64_t first, int64_t leaf, Lanes<T>& out) const {
    if (leaf == 1) return lanes_of(first, kSumLanes, out);
    if (leaf == kUsualLeaf && count - first >= kSumLanes * kUsualLeaf) {
      sums_of_leaves<kSumLanes>(first, out);
      out.add(Lanes<T>{});  // chains that began with their first elements may be -0
      return;
    }
    Lanes<T> leaves[kSumLanes];
    for (auto& each : leaves) lanes_of(first, leaf, each), first += leaf;
    join_all_lanes(leaves);
    out = leaves[0];
  }

  static constexpr int64_t kUsualLeaf = 2 * kSumLanes;
};

/// One column. 16 leaves at a time; of such vectors two of one height become one of their parents.
template <class T, class Element>
LOCKSTEP_PORTABLE T sum_row(const NodeWork& work, const Element& element) {
  const RowElements<T, Element> row{element, work.elements};
  const int64_t leaves = work.leaves > 0 ? work.leaves : 1;
  const auto vectors = static_cast<uint64_t>((leaves + kSumLanes - 1) / kSumLanes);
  const Lanes<T> nothing = {};
  Lanes<T> waiting[60], sums = nothing;
  for (uint64_t v = 0; v < vectors; ++v) {
    row.sums_of(static_cast<int64_t>(v) * kSumLanes * work.leaf, work.leaf, sums);
    int height = 0;
    for (uint64_t before = v; (before & 1) != 0; before >>= 1) join_lanes<1>(waiting[height++], sums, sums);
    waiting[height] = sums;
  }
  int height = 0;
  while ((vectors >> height & 1) == 0) ++height;
  sums = waiting[height];
  for (++height; vectors >> height != 0; ++height) {
    const bool has_left = (vectors >> height & 1) != 0;
    join_lanes<1>(has_left ? waiting[height] : sums, has_left ? sums : nothing, sums);
  }
  return sum_of_siblings<T>(sums);
}

}  // namespace lockstep::kernels::loops

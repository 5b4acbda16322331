#pragma once
#include <cstdint>

#include "core/elementary/portable.h"
#include "runtime/kernels/simd/lanes.h"

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

/// element(0), element(1) ... of a row, or of several, one behind the other.
template <class T, class Element>
struct RowElements {
  const Element& element;
  int64_t readable;  ///< element(i) is something for i < readable

  /// Of the leaf [first, first + leaf) in a row that ends at `end`. What is absent is +0, which changes no sum.
  LOCKSTEP_PORTABLE void lanes_of(int64_t first, int64_t leaf, int64_t end, Lanes<T>& out) const {
    out = Lanes<T>{};
    add_to_lanes<T>(
        end - first < leaf ? end - first : leaf, readable - first,
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
  /// The sums of 16 usual leaves, one behind the other.
  LOCKSTEP_PORTABLE void sums_of_usual(int64_t first, Lanes<T>& out) const {
    sums_of_leaves<kSumLanes>(first, out);
    out.add(Lanes<T>{});  // chains that began with their first elements may be -0
  }
  /// The sums of the 16 leaves from `first` on in a row that ends at `end`.
  LOCKSTEP_PORTABLE void sums_of(int64_t first, int64_t leaf, int64_t end, Lanes<T>& out) const {
    if (leaf == 1) return lanes_of(first, kSumLanes, end, out);
    if (leaf == kUsualLeaf && end - first >= kSumLanes * kUsualLeaf) return sums_of_usual(first, out);
    Lanes<T> leaves[kSumLanes];
    for (auto& each : leaves) lanes_of(first, leaf, end, each), first += leaf;
    join_all_lanes(leaves);
    out.assign(leaves[0]);
  }

  static constexpr int64_t kUsualLeaf = 2 * kSumLanes;
};

/// Vectors of 16 siblings that come one after the other: two of one height become one of their parents.
template <class T>
struct JoinedVectors {
  Lanes<T> waiting[60];  ///< one per height

  /// Vector v of siblings; joins it in place.
  LOCKSTEP_PORTABLE void add(uint64_t v, Lanes<T>& sums) {
    int height = 0;
    for (; (v & 1) != 0; v >>= 1) join_lanes<1>(waiting[height++], sums, sums);
    waiting[height].assign(sums);
  }
};

/// One column, 16 leaves at a time.
template <class T, class Element>
LOCKSTEP_PORTABLE T sum_row(const NodeWork& work, const Element& element) {
  const RowElements<T, Element> row{element, work.elements};
  const int64_t leaves = work.leaves > 0 ? work.leaves : 1;
  const auto vectors = static_cast<uint64_t>((leaves + kSumLanes - 1) / kSumLanes);
  const Lanes<T> nothing = {};
  JoinedVectors<T> joined;
  Lanes<T> sums = nothing;
  for (uint64_t v = 0; v < vectors; ++v) {
    row.sums_of(static_cast<int64_t>(v) * kSumLanes * work.leaf, work.leaf, work.elements, sums);
    joined.add(v, sums);
  }
  int height = 0;
  while ((vectors >> height & 1) == 0) ++height;
  sums.assign(joined.waiting[height]);
  for (++height; vectors >> height != 0; ++height) {
    const bool has_left = (vectors >> height & 1) != 0;
    join_lanes<1>(has_left ? joined.waiting[height] : sums, has_left ? sums : nothing, sums);
  }
  return sum_of_siblings<T>(sums);
}

}  // namespace lockstep::kernels::loops

#pragma once
#include "runtime/kernels/sums/node_sum.h"

/// Sums of 16 rows at once. Each row has room for a power of two of leaves, absent ones are +0; 16 leaves make a
/// vector, of whichever rows they are, and vectors are joined until every number is the sum of a row. So short rows
/// fill vectors too, and joining costs the same for each row however short it is: it adds what sum_row adds.
namespace lockstep::kernels::loops {

template <class T>
struct RowBlock {
  const NodeWork& work;
  const T* x;        ///< of the node in the first row
  int64_t width;     ///< from a row to the next
  int64_t readable;  ///< elements from x on
  int height;        ///< of a row's tree: room for 2^height leaves

  /// REQUIRES: at least one leaf, of more than one element; the last of 16 rows ends before `readable` elements do.
  LOCKSTEP_PORTABLE void sums(T* out) const {
    JoinedVectors<T> joined;
    Lanes<T> sums;
    for (int64_t v = 0; v < int64_t{1} << height; ++v) {
      sums_of_vector(v * kSumLanes, sums);
      joined.add(static_cast<uint64_t>(v), sums);
    }
    __builtin_memcpy(out, &joined.waiting[height], sizeof sums);
  }

  /// The height of a tree of so many leaves.
  LOCKSTEP_PORTABLE static int height_over(int64_t leaves) {
    int height = 0;
    while (int64_t{1} << height < leaves) ++height;
    return height;
  }

 private:
  static constexpr int kVectorHeight = 4;

  /// Of 16 leaves of the block.
  LOCKSTEP_PORTABLE void sums_of_vector(int64_t leaf, Lanes<T>& out) const {
    const T* from = x;
    const auto element = [from](int64_t i) __attribute__((always_inline)) { return from[i]; };
    const RowElements<T, decltype(element)> elements{element, readable};
    const int64_t leaves = int64_t{1} << height, row = (leaf >> height) * width;
    const int64_t first = row + (leaf & (leaves - 1)) * work.leaf;
    const bool in_one_row = height >= kVectorHeight;
    const bool usual = work.leaf == elements.kUsualLeaf && work.elements == leaves * work.leaf;
    if (usual && (in_one_row || width == work.elements))
      elements.sums_of_usual(first, out);
    else if (in_one_row)
      elements.sums_of(first, work.leaf, row + work.elements, out);
    else
      sums_of_short_rows(elements, row, out);
  }

  /// Of the 16 leaves that begin with a row.
  template <class Elements>
  LOCKSTEP_PORTABLE void sums_of_short_rows(const Elements& elements, int64_t row, Lanes<T>& out) const {
    Lanes<T> lanes[kSumLanes];
    const int64_t leaves = int64_t{1} << height;
    int64_t first = row, left = leaves;
    for (auto& each : lanes) {
      elements.lanes_of(first, work.leaf, row + work.elements, each);
      first += work.leaf;
      if (--left == 0) left = leaves, row += width, first = row;
    }
    join_all_lanes(lanes);
    out.assign(lanes[0]);
  }
};

}  // namespace lockstep::kernels::loops

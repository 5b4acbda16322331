#pragma once
// The product's tile for one instruction set; see tile.h for how it is included.
#include <algorithm>

#include "runtime/kernels/products/tile_sizes.h"
#include "runtime/kernels/simd/tile.h"

namespace lockstep::kernels {
namespace {

/// The left factor as pack() leaves it.
template <int kRowStride>
struct PackedLeft {
  static constexpr int64_t kStep = kRowStride;

  template <class Set, int kRows, int kVectors>
  LOCKSTEP_TILE_INLINE static void chain(TileRegisters<Set, kRows, kVectors>& tile,
                                         const TileWork<typename Set::Element>& /*work*/,
                                         const typename Set::Element* a, const typename Set::Element* b,
                                         int64_t length) {
    chain_tile<Set, kRows, kVectors>(tile, a, 1, kRowStride, b, kVectors * Set::kLanes, length);
  }
};

/// The left factor where it is.
struct LeftInPlace {
  static constexpr int64_t kStep = 1;

  template <class Set, int kRows, int kVectors>
  LOCKSTEP_TILE_INLINE static void chain(TileRegisters<Set, kRows, kVectors>& tile,
                                         const TileWork<typename Set::Element>& work, const typename Set::Element* a,
                                         const typename Set::Element* b, int64_t length) {
    chain_tile_in_place<Set, kRows, kVectors>(tile, a, work.a_row, b, kVectors * Set::kLanes, length);
  }
};

template <class Set, class Left, int kRows, int kVectors>
struct ProductTile {
  using T = typename Set::Element;
  using Registers = TileRegisters<Set, kRows, kVectors>;
  static constexpr int kColumns = kVectors * Set::kLanes, kSize = kRows * kColumns, kLine = 64 / sizeof(T);

  /// The tree over the leaves of the group, without its last store.
  LOCKSTEP_TILE_INLINE static void add_leaves(Registers& tile, const TileWork<T>& work) {
    const T *a = work.a, *b = work.b;
    T* top = work.stack;
    for (int64_t leaf = 0;; ++leaf) {
      const int64_t length = work.leaves[leaf].length;
      clear_tile<Set, kRows, kVectors>(tile);
      Left::template chain<Set, kRows, kVectors>(tile, work, a, b, length);
      a += length * Left::kStep;
      b += length * kColumns;
      for (int joins = work.leaves[leaf].joins; joins > 0; --joins)
        join_tile<Set, kRows, kVectors>(top -= kSize, kColumns, tile);
      if (leaf + 1 == work.leaf_count) return;
      store_tile<Set, kRows, kVectors>(tile, top, kColumns);
      top += kSize;
    }
  }

  LOCKSTEP_TILE_TARGET static void compute(const TileWork<T>& work) {
    if (work.out != nullptr)  // lines that are far away arrive during the computation
      for (int row = 0; row < work.rows; ++row)
        for (int column = 0; column < kColumns; column += kLine)
          __builtin_prefetch(work.out + row * work.out_stride + column, 1);
    Registers tile;
    add_leaves(tile, work);
    T* waiting = work.waiting + work.depth * work.waiting_stride;
    for (int joins = work.joins; joins > 0; --joins)
      join_tile<Set, kRows, kVectors>(waiting -= work.waiting_stride, kColumns, tile);
    if (work.out == nullptr) return store_tile<Set, kRows, kVectors>(tile, waiting, kColumns);
    add_zero<Set, kRows, kVectors>(tile);
    write_tile<Set, kRows, kVectors>(tile, work.out, work.out_stride, work.rows, work.columns);
  }
};

/// The smallest tile that holds the rows that are there.
template <class Set, int kRowStride, int kVectors, int kRows, int... kFewerRows>
LOCKSTEP_TILE_TARGET void compute_tile(const TileWork<typename Set::Element>& work) {
  if constexpr (sizeof...(kFewerRows) > 0) {
    constexpr int kNext = std::max({kFewerRows...});
    if (work.rows <= kNext) return compute_tile<Set, kRowStride, kVectors, kFewerRows...>(work);
  }
  if (work.a_row != 0) return ProductTile<Set, LeftInPlace, kRows, kVectors>::compute(work);
  ProductTile<Set, PackedLeft<kRowStride>, kRows, kVectors>::compute(work);
}

}  // namespace
}  // namespace lockstep::kernels

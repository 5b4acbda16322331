#pragma once
// The tiles of attention for one instruction set; see tile.h for how it is included.
#include "runtime/kernels/attention/attention_numbers.h"
#include "runtime/kernels/attention/attention_work.h"
#include "runtime/kernels/products/product_pack.h"
#include "runtime/kernels/simd/lanes.h"
#include "runtime/kernels/simd/scratch.h"
#include "runtime/kernels/simd/tile.h"

namespace lockstep::kernels {
namespace {

/// Weights of rows lie this far apart: a block of keys, and what keeps rows off each other's cache lines.
inline constexpr int64_t kWeightStride = kKeyBlock + 16;

/// Tiles of kRows rows (or one of the smaller counts) and two vectors.
template <class VectorSet, int kTileRows, int kPackedStride, int... kSmaller>
struct Tiling {
  using Set = VectorSet;
  using T = typename Set::Element;
  static constexpr int kRows = kTileRows, kPacked = kPackedStride, kColumns = 2 * Set::kLanes;

  /// Operation<Set, rows, vectors>::run(work) for the smallest tile that holds rows x columns.
  template <template <class, int, int> class Operation, class Work>
  LOCKSTEP_TILE_TARGET static void run(int64_t rows, int64_t columns, const Work& work) {
    if (columns <= Set::kLanes) return pick<Operation, 1, Work, kTileRows, kSmaller...>(rows, work);
    pick<Operation, 2, Work, kTileRows, kSmaller...>(rows, work);
  }

 private:
  template <template <class, int, int> class Operation, int kVectors, class Work, int kThis, int... kFewer>
  LOCKSTEP_TILE_TARGET static void pick(int64_t rows, const Work& work) {
    if constexpr (sizeof...(kFewer) > 0) {
      if (rows <= std::max({kFewer...})) return pick<Operation, kVectors, Work, kFewer...>(rows, work);
    }
    Operation<Set, kThis, kVectors>::run(work);
  }
};

/// Packed rows times packed rows: out = the chains over `size` elements.
template <class T>
struct DotWork {
  const T *a, *b;
  int64_t a_step, b_step, size;
  T* out;  ///< kWeightStride apart
};
template <class Set, int kRows, int kVectors>
struct Dot {
  using T = typename Set::Element;
  LOCKSTEP_TILE_TARGET static void run(const DotWork<T>& work) {
    TileRegisters<Set, kRows, kVectors> tile;
    clear_tile<Set, kRows, kVectors>(tile);
    chain_tile<Set, kRows, kVectors>(tile, work.a, 1, work.a_step, work.b, work.b_step, work.size);
    store_tile<Set, kRows, kVectors>(tile, work.out, kWeightStride);
  }
};

/// chain_tile for rows [low, high) of a tile at one position.
template <class Set, int kRows, int kVectors>
LOCKSTEP_TILE_INLINE void chain_rows(TileRegisters<Set, kRows, kVectors>& tile, const typename Set::Element* a,
                                     int64_t a_row, const typename Set::Element* b, int64_t low, int64_t high) {
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
    if (row < low || row >= high) continue;
    const auto left = Set::broadcast(a[row * a_row]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) tile[row][v] = Set::fma(left, Set::load(b + v * Set::kLanes), tile[row][v]);
  }
}

/// Continues chains over keys: sums += weights * b, row r over keys starts[r] .. counts[r] - 1 (neither less than of
/// row r - 1).
template <class T>
struct OverKeysWork {
  const T* weights;
  const T* b;
  int64_t b_step;
  const int64_t *starts, *counts;
  T* sums;
  int64_t sums_stride;
};
template <class Set, int kRows, int kVectors>
struct OverKeys {
  using T = typename Set::Element;
  LOCKSTEP_TILE_TARGET static void run(const OverKeysWork<T>& work) {
    TileRegisters<Set, kRows, kVectors> tile;
    load_tile<Set, kRows, kVectors>(work.sums, work.sums_stride, tile);
    const int64_t all = work.starts[kRows - 1], end = work.counts[kRows - 1];
    int64_t key = work.starts[0], low = 0;
    for (int64_t high = 0; key < all && key < end; ++key) {
      while (high < kRows && work.starts[high] <= key) ++high;
      while (work.counts[low] <= key) ++low;
      chain_rows<Set, kRows, kVectors>(tile, work.weights + key, kWeightStride, work.b + key * work.b_step, low, high);
    }
    if (key < work.counts[0]) {
      chain_tile<Set, kRows, kVectors>(tile, work.weights + key, kWeightStride, 1, work.b + key * work.b_step,
                                       work.b_step, work.counts[0] - key);
      key = work.counts[0];
    }
    for (; key < end; ++key) {
      while (work.counts[low] <= key) ++low;
      chain_rows<Set, kRows, kVectors>(tile, work.weights + key, kWeightStride, work.b + key * work.b_step, low, kRows);
    }
    store_tile<Set, kRows, kVectors>(tile, work.sums, work.sums_stride);
  }
};

/// A leaf of query rows, for a tile of keys: key r over rows starts[r] .. ends[r] - 1 (neither before those of key
/// r - 1). Joined with `joins` of the nodes that wait in front of `waiting`, it takes the place of all `places` of them
/// or, where a node ends, goes out.
template <class T>
struct OverRowsWork {
  const T* weights;
  const T* b;
  int64_t b_step;
  const int64_t *starts, *ends;
  T* waiting;
  int64_t waiting_stride;
  int joins, places;
  T* out;
  int64_t out_stride, out_rows, out_columns;
};
template <class Set, int kRows, int kVectors>
struct OverRows {
  using T = typename Set::Element;
  LOCKSTEP_TILE_TARGET static void run(const OverRowsWork<T>& work) {
    constexpr int64_t kColumns = kVectors * Set::kLanes;
    TileRegisters<Set, kRows, kVectors> tile;
    clear_tile<Set, kRows, kVectors>(tile);
    const int64_t all = work.starts[kRows - 1], end = work.ends[kRows - 1];
    int64_t row = work.starts[0], low = 0;
    for (int64_t high = 0; row < all && row < end; ++row) {
      while (high < kRows && work.starts[high] <= row) ++high;
      while (work.ends[low] <= row) ++low;
      chain_rows<Set, kRows, kVectors>(tile, work.weights + row * kWeightStride, 1, work.b + row * work.b_step, low,
                                       high);
    }
    if (row < work.ends[0]) {
      chain_tile<Set, kRows, kVectors>(tile, work.weights + row * kWeightStride, 1, kWeightStride,
                                       work.b + row * work.b_step, work.b_step, work.ends[0] - row);
      row = work.ends[0];
    }
    for (; row < end; ++row) {
      while (work.ends[low] <= row) ++low;
      chain_rows<Set, kRows, kVectors>(tile, work.weights + row * kWeightStride, 1, work.b + row * work.b_step, low,
                                       kRows);
    }
    for (int joined = 1; joined <= work.joins; ++joined)
      join_tile<Set, kRows, kVectors>(work.waiting - joined * work.waiting_stride, kColumns, tile);
    if (work.out == nullptr)
      return store_tile<Set, kRows, kVectors>(tile, work.waiting - work.places * work.waiting_stride, kColumns);
    add_zero<Set, kRows, kVectors>(tile);
    write_tile<Set, kRows, kVectors>(tile, work.out, work.out_stride, work.out_rows, work.out_columns);
  }
};

LOCKSTEP_PORTABLE int64_t round_up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

/// Query rows [first, first + rows) in T, contiguous; rows are counted with the heads of the group inside.
template <class Input, class T>
LOCKSTEP_TILE_TARGET void copy_rows(const HeadTensor<const Input>& tensor, int64_t batch, int64_t head, int64_t group,
                                    int64_t first, int64_t rows, int64_t size, T* __restrict to) {
  constexpr int64_t kAhead = 8;  // rows; the processor does not foresee such steps
  for (int64_t member = 0; member < group; ++member) {
    const HeadTensor<const Input> from = tensor.at(batch, head * group + member);
    for (int64_t row = (first + group - 1 - member) / group; row * group + member < first + rows; ++row) {
      const Input* __restrict source = from.data + row * from.row_stride;
      T* __restrict copy = to + (row * group + member - first) * size;
      __builtin_prefetch(source + kAhead * from.row_stride);
      if (from.element_stride == 1)
        for (int64_t i = 0; i < size; ++i) copy[i] = widen(source[i]);
      else
        for (int64_t i = 0; i < size; ++i) copy[i] = widen(source[i * from.element_stride]);
    }
  }
}

/// Rows as panels of kColumns, positions their elements: the right factor of products over elements.
template <class Tiling, class Input>
LOCKSTEP_TILE_INLINE void pack_for_dots(const HeadTensor<const Input>& head, int64_t rows, int64_t size,
                                        typename Tiling::T* to) {
  pack<Tiling::kColumns>(PackWork<Input, typename Tiling::T>{head.data, head.row_stride, head.element_stride, rows,
                                                             size, to, Tiling::kColumns, Tiling::kColumns * size});
}

/// Elements as panels of kColumns, positions the rows: the right factor of products over rows.
template <class Tiling, class Input>
LOCKSTEP_TILE_INLINE void pack_for_sums(const HeadTensor<const Input>& head, int64_t rows, int64_t size,
                                        typename Tiling::T* to) {
  pack<Tiling::kColumns>(PackWork<Input, typename Tiling::T>{head.data, head.element_stride, head.row_stride, size,
                                                             rows, to, Tiling::kColumns, Tiling::kColumns * rows});
}

}  // namespace
}  // namespace lockstep::kernels

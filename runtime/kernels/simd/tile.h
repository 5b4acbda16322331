#pragma once
// Register tiles for one instruction set. Included by the sources of that set, which define LOCKSTEP_TILE_TARGET
// (LOCKSTEP_TARGET_...) before; everything has internal linkage, because it is another function in each of them.
#include <cstring>

#include "runtime/kernels/simd/vectors.h"

#define LOCKSTEP_TILE_INLINE LOCKSTEP_TILE_TARGET inline __attribute__((always_inline))

namespace lockstep::kernels {
namespace {

/// Rows times columns in registers.
template <class Set, int kRows, int kVectors>
using TileRegisters = typename Set::Vector[kRows][kVectors];

template <class Set, int kRows, int kVectors>
LOCKSTEP_TILE_INLINE void clear_tile(TileRegisters<Set, kRows, kVectors>& tile) {
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) tile[row][v] = Set::zero();
}

/// tile = fma(a, b, tile) for `count` positions in turn: rows of a lie a_row apart, positions a_step and b_step.
template <class Set, int kRows, int kVectors>
LOCKSTEP_TILE_INLINE void chain_tile(TileRegisters<Set, kRows, kVectors>& tile, const typename Set::Element* a,
                                     int64_t a_row, int64_t a_step, const typename Set::Element* b, int64_t b_step,
                                     int64_t count) {
  constexpr int kAhead = 8;
#pragma GCC unroll 4
  for (int64_t position = 0; position < count; ++position, a += a_step, b += b_step) {
    if (a_row == 1) __builtin_prefetch(a + kAhead * a_step);  // packed: another line at each position
    typename Set::Vector right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = Set::load(b + v * Set::kLanes);
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const auto left = Set::broadcast(a[row * a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) tile[row][v] = Set::fma(left, right[v], tile[row][v]);
    }
  }
}

/// chain_tile over neighbouring positions of rows that lie a_row apart. Every third row has a pointer: the processor
/// adds one or two distances to it by itself, and more pointers than registers would be loaded each time.
template <class Set, int kRows, int kVectors>
LOCKSTEP_TILE_INLINE void chain_tile_in_place(TileRegisters<Set, kRows, kVectors>& tile, const typename Set::Element* a,
                                              int64_t a_row, const typename Set::Element* b, int64_t b_step,
                                              int64_t count) {
  constexpr int kPointers = (kRows + 2) / 3;
  const typename Set::Element* third[kPointers];
#pragma GCC unroll 8
  for (int i = 0; i < kPointers; ++i) third[i] = a + 3 * i * a_row;
#pragma GCC unroll 4
  for (int64_t position = 0; position < count; ++position, b += b_step) {
    typename Set::Vector right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = Set::load(b + v * Set::kLanes);
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const auto left = Set::broadcast(third[row / 3][row % 3 * a_row + position]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) tile[row][v] = Set::fma(left, right[v], tile[row][v]);
    }
  }
}

/// tile = left + tile.
template <class Set, int kRows, int kVectors>
LOCKSTEP_TILE_INLINE void join_tile(const typename Set::Element* left, int64_t stride,
                                    TileRegisters<Set, kRows, kVectors>& tile) {
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      tile[row][v] = Set::add(Set::load(left + row * stride + v * Set::kLanes), tile[row][v]);
}

template <class Set, int kRows, int kVectors>
LOCKSTEP_TILE_INLINE void load_tile(const typename Set::Element* from, int64_t stride,
                                    TileRegisters<Set, kRows, kVectors>& tile) {
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) tile[row][v] = Set::load(from + row * stride + v * Set::kLanes);
}

template <class Set, int kRows, int kVectors>
LOCKSTEP_TILE_INLINE void store_tile(const TileRegisters<Set, kRows, kVectors>& tile, typename Set::Element* to,
                                     int64_t stride) {
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) Set::store(to + row * stride + v * Set::kLanes, tile[row][v]);
}

/// -0 becomes +0.
template <class Set, int kRows, int kVectors>
LOCKSTEP_TILE_INLINE void add_zero(TileRegisters<Set, kRows, kVectors>& tile) {
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) tile[row][v] = Set::add(tile[row][v], Set::zero());
}

/// Through memory of its own where the tile is larger than what is left of the result.
template <class Set, int kRows, int kVectors>
LOCKSTEP_TILE_INLINE void write_tile(const TileRegisters<Set, kRows, kVectors>& tile, typename Set::Element* to,
                                     int64_t stride, int64_t rows, int64_t columns) {
  constexpr int kColumns = kVectors * Set::kLanes;
  if (rows == kRows && columns == kColumns) return store_tile<Set, kRows, kVectors>(tile, to, stride);
  typename Set::Element whole[kRows * kColumns];
  store_tile<Set, kRows, kVectors>(tile, whole, kColumns);
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(to + row * stride, whole + row * kColumns, static_cast<std::size_t>(columns) * sizeof(whole[0]));
}

}  // namespace
}  // namespace lockstep::kernels

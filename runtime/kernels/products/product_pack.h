#pragma once
// Packing for one instruction set of x86; see tile.h for how it is included.
#include <algorithm>

#include "runtime/kernels/products/tile_sizes.h"
#include "runtime/kernels/simd/tile.h"

namespace lockstep::kernels {
namespace {

LOCKSTEP_PORTABLE float widen(float value) { return value; }
LOCKSTEP_PORTABLE double widen(double value) { return value; }
LOCKSTEP_PORTABLE float widen(Bfloat16 value) { return portable::bits<float>(static_cast<uint32_t>(value.bits) << 16); }

inline constexpr int kUnit = 8;  ///< rows and positions that are transposed at once

/// Fewer rows than a panel holds, side by side: copied, and 0 behind them.
template <int kWidth, class Input, class T>
LOCKSTEP_TILE_INLINE void pack_narrow_columns(const PackWork<Input, T>& work, int64_t rows) {
  for (int64_t position = 0; position < work.count; ++position) {
    const Input* from = work.from + position * work.element_stride;
    T* to = work.to + position * work.stride;
    T values[kWidth] = {};
    for (int64_t row = 0; row < rows; ++row) values[row] = widen(from[row]);
    std::memcpy(to, values, sizeof(values));
  }
}

/// Strides in both directions.
template <class Input, class T>
LOCKSTEP_PORTABLE void pack_plainly(const PackWork<Input, T>& work, int64_t first, int64_t rows, int64_t width) {
  for (int64_t position = first; position < work.count; ++position) {
    const Input* from = work.from + position * work.element_stride;
    T* to = work.to + position * work.stride;
    for (int64_t row = 0; row < width; ++row) to[row] = row < rows ? widen(from[row * work.row_stride]) : T(0);
  }
}

/// Rows lie side by side: each position is read from end to end, because its lines are far from those of the next. Some
/// panels at a time: a processor holds the addresses of few pages to write to.
template <int kWidth, class Input, class T>
LOCKSTEP_TILE_INLINE void pack_columns(const PackWork<Input, T>& work) {
  constexpr int kAhead = 8;  // positions; the processor does not foresee such steps
  constexpr int64_t kPanels = 8;
  const int64_t panels = work.rows / kWidth;
  for (int64_t first = 0; first < panels; first += kPanels)
    for (int64_t position = 0; position < work.count; ++position) {
      const Input* from = work.from + position * work.element_stride + first * kWidth;
      T* to = work.to + position * work.stride + first * work.panel_stride;
      const int64_t end = std::min(panels, first + kPanels);
      for (int64_t panel = first; panel < end; ++panel, from += kWidth, to += work.panel_stride) {
        __builtin_prefetch(from + kAhead * work.element_stride);
        __builtin_prefetch(from + kAhead * work.element_stride + kWidth - 1);
        T values[kWidth];
        for (int row = 0; row < kWidth; ++row) values[row] = widen(from[row]);
        std::memcpy(to, values, sizeof(values));
      }
    }
}

#if defined(LOCKSTEP_TILE_HAS_AVX2)

LOCKSTEP_TILE_INLINE __m256 load_eight(const float* from) { return _mm256_loadu_ps(from); }
LOCKSTEP_TILE_INLINE __m256 load_eight(const Bfloat16* from) {
  const __m128i narrow = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(narrow), 16));
}

/// Eight positions of eight rows.
template <class Input>
LOCKSTEP_TILE_INLINE void transpose(const Input* const (&from)[kUnit], float* to, int64_t to_stride) {
  __m256 row[8], pair[8];
#  pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) row[i] = load_eight(from[i]);
#  pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
  }
#  pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    row[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    row[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
    row[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    row[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
  }
#  pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(row[i], row[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(row[i], row[i + 4], 0x31));
  }
}

/// As four blocks of 4 x 4.
LOCKSTEP_TILE_INLINE void transpose(const double* const (&from)[kUnit], double* to, int64_t to_stride) {
#  pragma GCC unroll 4
  for (int block = 0; block < 4; ++block) {
    const int first = block / 2 * 4, shift = block % 2 * 4;
    __m256d row[4], pair[4];
#  pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) row[i] = _mm256_loadu_pd(from[first + i] + shift);
    pair[0] = _mm256_unpacklo_pd(row[0], row[1]);
    pair[1] = _mm256_unpackhi_pd(row[0], row[1]);
    pair[2] = _mm256_unpacklo_pd(row[2], row[3]);
    pair[3] = _mm256_unpackhi_pd(row[2], row[3]);
#  pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      _mm256_storeu_pd(to + (shift + i) * to_stride + first, _mm256_permute2f128_pd(pair[i], pair[i + 2], 0x20));
      _mm256_storeu_pd(to + (shift + i + 2) * to_stride + first, _mm256_permute2f128_pd(pair[i], pair[i + 2], 0x31));
    }
  }
}

/// The positions of a row lie side by side: kUnit rows of one panel.
template <class Input, class T>
LOCKSTEP_TILE_INLINE void pack_unit(const PackWork<Input, T>& work, int64_t rows) {
  static constexpr Input kNothing[kUnit] = {};
  const int64_t whole = work.count / kUnit * kUnit;
  for (int64_t at = 0; at < whole; at += kUnit) {
    const Input* row[kUnit];
    for (int i = 0; i < kUnit; ++i) row[i] = i < rows ? work.from + i * work.row_stride + at : kNothing;
    transpose(row, work.to + at * work.stride, work.stride);
  }
  pack_plainly(work, whole, rows, kUnit);
}

/// A panel, some positions at a time, so that what is written stays in cache until its lines are full.
template <int kWidth, class Input, class T>
LOCKSTEP_TILE_INLINE void pack_rows(const PackWork<Input, T>& work, int64_t rows) {
  constexpr int64_t kPositions = 64;
  for (int64_t first = 0; first < work.count; first += kPositions)
    for (int64_t row = 0; row < kWidth; row += kUnit) {
      PackWork<Input, T> unit = work;
      unit.from += first + (row < rows ? row * work.row_stride : 0);
      unit.to += first * work.stride + row;
      unit.count = std::min(kPositions, work.count - first);
      pack_unit(unit, std::clamp<int64_t>(rows - row, 0, kUnit));
    }
}

#endif

template <int kWidth, class Input, class T>
LOCKSTEP_TILE_INLINE void pack_panel(const PackWork<Input, T>& work, int64_t rows) {
#if defined(LOCKSTEP_TILE_HAS_AVX2)
  if (work.element_stride == 1) return pack_rows<kWidth>(work, rows);
#endif
  if (work.row_stride == 1 && rows == kWidth / 2) return pack_narrow_columns<kWidth>(work, kWidth / 2);
  if (work.row_stride == 1) return pack_narrow_columns<kWidth>(work, rows);
  pack_plainly(work, 0, rows, kWidth);
}

/// REQUIRES: work.stride is a multiple of kUnit and >= kWidth.
template <int kWidth, class Input, class T>
LOCKSTEP_TILE_TARGET void pack(const PackWork<Input, T>& work) {
  if (work.rows <= 0 || work.count <= 0) return;  // an empty tensor has no address to count from
  PackWork<Input, T> rest = work;
  if (work.row_stride == 1 && work.element_stride != 1) {
    pack_columns<kWidth>(work);
    const int64_t panels = work.rows / kWidth;
    rest.from += panels * kWidth;
    rest.to += panels * work.panel_stride;
    rest.rows -= panels * kWidth;
  }
  for (; rest.rows > 0; rest.rows -= kWidth, rest.from += kWidth * rest.row_stride, rest.to += rest.panel_stride)
    pack_panel<kWidth>(rest, std::min<int64_t>(rest.rows, kWidth));
}

}  // namespace
}  // namespace lockstep::kernels

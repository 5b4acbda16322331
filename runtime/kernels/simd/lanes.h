#pragma once
#include <cstdint>
#include <utility>

#include "core/elementary/portable.h"
#include "runtime/kernels/simd/lane_count.h"

/// Sums of what lies side by side, in an order that every vector width can keep: element i belongs to lane i mod 16, a
/// lane is one chain in ascending order from +0, then lanes 8 apart are added, then 4, 2 and 1 apart.
namespace lockstep::kernels {

namespace detail {
/// Vectors of 32 bytes: compilers take longer ones apart, number by number, where the machine has none.
template <class T>
struct LanePiece;
template <>
struct LanePiece<float> {
  static constexpr int kCount = 8;
  using Vector __attribute__((vector_size(32))) = float;
  using Index = int32_t;
};
template <>
struct LanePiece<double> {
  static constexpr int kCount = 4;
  using Vector __attribute__((vector_size(32))) = double;
  using Index = int64_t;
};
}  // namespace detail

/// 16 numbers.
template <class T>
struct Lanes {
  static constexpr int kPiece = detail::LanePiece<T>::kCount, kPieces = kSumLanes / kPiece;
  typename detail::LanePiece<T>::Vector pieces[kPieces];

  LOCKSTEP_PORTABLE void add(const Lanes& other) {
    for (int p = 0; p < kPieces; ++p) pieces[p] += other.pieces[p];
  }
  /// Copies by pieces, as they are read again: a load of half of what one store wrote is quick, one of two stores' is
  /// not.
  LOCKSTEP_PORTABLE void assign(const Lanes& other) {
    for (int p = 0; p < kPieces; ++p) pieces[p] = other.pieces[p];
  }
  /// Lanes from `count` on become +0. Without a branch.
  LOCKSTEP_PORTABLE void keep(int64_t count) {
    using Index __attribute__((vector_size(32))) = typename detail::LanePiece<T>::Index;
    const typename detail::LanePiece<T>::Vector nothing = {};
    for (int p = 0; p < kPieces; ++p) {
      Index lane;
      for (int i = 0; i < kPiece; ++i) lane[i] = p * kPiece + i;
      pieces[p] = lane < static_cast<typename detail::LanePiece<T>::Index>(count) ? pieces[p] : nothing;
    }
  }
};

/// element(0) to element(15).
template <class T, class Element>
LOCKSTEP_PORTABLE void load_lanes(const Element& element, Lanes<T>& lanes) {
  T group[kSumLanes];
  for (int lane = 0; lane < kSumLanes; ++lane) group[lane] = element(lane);
  __builtin_memcpy(&lanes, group, sizeof lanes);
}

/// Adds elements to their lanes, beginning with lane 0: element(i) for i < count, none if it is negative. There may be
/// more: element(i) is something for i < readable.
template <class T, class Element>
LOCKSTEP_PORTABLE void add_to_lanes(int64_t count, int64_t readable, const Element& element, Lanes<T>& lanes) {
  const int64_t whole = count < 0 ? 0 : count / kSumLanes * kSumLanes;
  Lanes<T> next;
  for (int64_t i = 0; i < whole; i += kSumLanes) {
    load_lanes<T>(
        [&element, i ](int64_t lane) __attribute__((always_inline)) { return element(i + lane); }, next);
    lanes.add(next);
  }
  if (whole >= count) return;
  if (whole + kSumLanes <= readable) {
    load_lanes<T>(
        [&element, whole ](int64_t lane) __attribute__((always_inline)) { return element(whole + lane); }, next);
    next.keep(count - whole);  // +0 changes no lane
  } else {
    T rest[kSumLanes] = {};
    for (int64_t i = whole; i < count; ++i) rest[i - whole] = element(i);
    __builtin_memcpy(&next, rest, sizeof next);
  }
  lanes.add(next);
}

namespace detail {
/// In blocks of 2 kApart numbers of two pieces, those kApart apart are added.
template <int kApart, class Vector, int... kLane>
LOCKSTEP_PORTABLE void join_pieces(const Vector& a, const Vector& b, Vector& out,
                                   std::integer_sequence<int, kLane...> /*lanes*/) {
  constexpr int kCount = sizeof...(kLane);
  if constexpr (2 * kApart == kCount) {
    // b's halves change places: numbers that stay where they are need no shuffle.
    out = __builtin_shufflevector(a, b, (kLane < kApart ? kLane : kLane + kCount)...) +
          __builtin_shufflevector(a, b, (kLane < kApart ? kLane + kApart : kLane - kApart + kCount)...);
  } else {
    out = __builtin_shufflevector(a, b, (kLane / kApart * 2 * kApart + kLane % kApart)...) +
          __builtin_shufflevector(a, b, (kLane / kApart * 2 * kApart + kLane % kApart + kApart)...);
  }
}
}  // namespace detail

/// Halves the number of lanes: those of a become the first half of `out`, those of b the second. `out` may be a or b.
template <int kApart, class T>
LOCKSTEP_PORTABLE void join_lanes(const Lanes<T>& a, const Lanes<T>& b, Lanes<T>& out) {
  constexpr int kPieces = Lanes<T>::kPieces, kPiece = Lanes<T>::kPiece, kStep = kApart / kPiece;
  typename detail::LanePiece<T>::Vector pieces[2 * kPieces];
  for (int p = 0; p < kPieces; ++p) pieces[p] = a.pieces[p], pieces[kPieces + p] = b.pieces[p];
  for (int p = 0; p < kPieces; ++p) {
    if constexpr (kStep > 0) {
      const int first = p / kStep * 2 * kStep + p % kStep;
      out.pieces[p] = pieces[first] + pieces[first + kStep];
    } else {
      detail::join_pieces<kApart>(pieces[2 * p], pieces[2 * p + 1], out.pieces[p],
                                  std::make_integer_sequence<int, kPiece>());
    }
  }
}

/// 16 sums at once: element k of sums[0] becomes that of the lanes sums[k]. Destroys the others.
template <class T>
LOCKSTEP_PORTABLE void join_all_lanes(Lanes<T>* sums) {
  for (int k = 0; k < 8; ++k) join_lanes<8>(sums[2 * k], sums[2 * k + 1], sums[k]);
  for (int k = 0; k < 4; ++k) join_lanes<4>(sums[2 * k], sums[2 * k + 1], sums[k]);
  for (int k = 0; k < 2; ++k) join_lanes<2>(sums[2 * k], sums[2 * k + 1], sums[k]);
  join_lanes<1>(sums[0], sums[1], sums[0]);
}

template <class T>
LOCKSTEP_PORTABLE T sum_of_lanes(const Lanes<T>& lanes) {
  Lanes<T> sum;
  join_lanes<8>(lanes, lanes, sum);
  join_lanes<4>(sum, sum, sum);
  join_lanes<2>(sum, sum, sum);
  return sum.pieces[0][0] + sum.pieces[0][1];
}

/// Of lane(0) to lane(15), or of what `kCount` of them came to when those kCount or more apart were added.
template <int kApart = 1, int kCount = kSumLanes, class Lane>
LOCKSTEP_PORTABLE auto sum_over_lanes(const Lane& lane, int first = 0) {
  if constexpr (kApart == kCount)
    return lane(first);
  else
    return sum_over_lanes<2 * kApart, kCount>(lane, first) + sum_over_lanes<2 * kApart, kCount>(lane, first + kApart);
}

template <class T>
LOCKSTEP_PORTABLE T sum_of_lanes(const T* lanes) {
  return sum_over_lanes([lanes](int lane) __attribute__((always_inline)) { return lanes[lane]; });
}

/// The sum of 16 siblings of a tree, left to right: neighbours first.
template <class T>
LOCKSTEP_PORTABLE T sum_of_siblings(const Lanes<T>& leaves) {
  Lanes<T> sum;
  join_lanes<1>(leaves, leaves, sum);
  join_lanes<1>(sum, sum, sum);
  join_lanes<1>(sum, sum, sum);
  return sum.pieces[0][0] + sum.pieces[0][1];
}

/// The sum of element(i) over i < count. Never -0.
template <class T, class Element>
LOCKSTEP_PORTABLE T lane_sum(int64_t count, const Element& element) {
  Lanes<T> lanes = {};
  add_to_lanes<T>(count, count, element, lanes);
  return sum_of_lanes<T>(lanes);
}

}  // namespace lockstep::kernels

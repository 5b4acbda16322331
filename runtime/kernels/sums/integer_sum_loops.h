#pragma once
#include <cstdint>

#include "core/elementary/instruction_set.h"

/// Sums that are the same in any order, because they are sums of integers, and the maximum; for float and double.
namespace lockstep::kernels::loops {

/// Sum of rint(x * 2^24) and the number of values that are not finite or not below 2^14 in magnitude.
struct FixedPoint {
  static constexpr int kBits = 24;
  static constexpr double kLimit = 0x1p14;
  int64_t sum = 0, refused = 0;
};
template <class T>
FixedPoint fixed_point_sum(int64_t count, const T* x);

/// The exact sum of rint(x * scale)^2 as high * 2^32 + low, 0 <= low < 2^32; what is larger than kLimit in magnitude,
/// or is a NaN, counts as kLimit. REQUIRES: scale is a power of two, fewer than 2^31 values.
struct WideSum {
  static constexpr double kLimit = 0x1p27;
  int64_t high = 0, low = 0;
};
template <class T>
WideSum scaled_squares(int64_t count, const T* x, double scale, InstructionSet set = best_instruction_set());

/// The largest |x|; a NaN if there is one; 0 of nothing.
template <class T>
T absolute_maximum(int64_t count, const T* x);

}  // namespace lockstep::kernels::loops

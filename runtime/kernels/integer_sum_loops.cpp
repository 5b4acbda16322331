#include "runtime/kernels/integer_sum_loops.h"

#include <type_traits>

#include "runtime/kernels/best_instruction_set.h"

namespace lockstep::kernels::loops {
namespace {

/// Adding 1.5 * 2^52 rounds a double below 2^51 to the nearest integer, which the low half of the sum's bits holds as
/// an int32 if it fits.
constexpr double kRound = 0x1.8p52;

/// Where the scale is a float: a product with a power of two is exact, or too small to be more than 0.
struct SquaresOfFloats {
  LOCKSTEP_PORTABLE static void run(int64_t count, const float* __restrict x, float scale, WideSum* out) {
    int64_t high = 0, low = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int32_t integer = static_cast<int32_t>(__builtin_rintf(x[i] * scale));
      const int64_t square = static_cast<int64_t>(integer) * integer;
      high += static_cast<int64_t>(static_cast<uint64_t>(square) >> 32);
      low += square & 0xffffffff;
    }
    *out = {high, low};
  }
};

template <class T>
struct ScaledSquares {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* __restrict x, double scale, WideSum* out) {
    int64_t high = 0, low = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto rounded = portable::bits<int64_t>(static_cast<double>(x[i]) * scale + kRound);
      const int64_t integer = static_cast<int32_t>(rounded), square = integer * integer;
      high += static_cast<int64_t>(static_cast<uint64_t>(square) >> 32);
      low += square & 0xffffffff;
    }
    *out = {high, low};
  }
};

/// Without their sign, floating numbers order as their bits do, and a NaN is above all numbers.
template <class T, class Bits>
struct AbsoluteMaximum {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* __restrict x, T* out) {
    constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
    Bits maximum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Bits magnitude = portable::bits<Bits>(x[i]) & kMagnitude;
      maximum = magnitude > maximum ? magnitude : maximum;
    }
    *out = portable::bits<T>(maximum);
  }
};

template <class T>
struct FixedPointSum {
  LOCKSTEP_PORTABLE static void run(int64_t count, const T* __restrict x, FixedPoint* out) {
    FixedPoint result;
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(x[i]);
      const bool fits = value > -FixedPoint::kLimit && value < FixedPoint::kLimit;
      const double scaled = (fits ? value : 0.0) * (int64_t{1} << FixedPoint::kBits);
      result.sum += portable::bits<int64_t>(scaled + kRound) - portable::bits<int64_t>(kRound);
      result.refused += fits ? 0 : 1;
    }
    *out = result;
  }
};

}  // namespace

template <class T>
FixedPoint fixed_point_sum(int64_t count, const T* x) {
  FixedPoint result;
  on_best_instruction_set<FixedPointSum<T>>(count, x, &result);
  return result;
}

template <class T>
WideSum scaled_squares(int64_t count, const T* x, double scale) {
  WideSum result;
  if constexpr (std::is_same_v<T, float>)
    if (scale < 0x1p127) {
      on_best_instruction_set<SquaresOfFloats>(count, x, static_cast<float>(scale), &result);
      return result;
    }
  on_best_instruction_set<ScaledSquares<T>>(count, x, scale, &result);
  return result;
}

template <>
float absolute_maximum(int64_t count, const float* x) {
  float result = 0;
  on_best_instruction_set<AbsoluteMaximum<float, uint32_t>>(count, x, &result);
  return result;
}

template <>
double absolute_maximum(int64_t count, const double* x) {
  double result = 0;
  on_best_instruction_set<AbsoluteMaximum<double, uint64_t>>(count, x, &result);
  return result;
}

template FixedPoint fixed_point_sum(int64_t, const float*);
template FixedPoint fixed_point_sum(int64_t, const double*);
template WideSum scaled_squares(int64_t, const float*, double);
template WideSum scaled_squares(int64_t, const double*, double);

}  // namespace lockstep::kernels::loops

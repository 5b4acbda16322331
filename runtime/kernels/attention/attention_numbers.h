#pragma once
#include <limits>

#include "core/elementary/elementary.h"
#include "core/elementary/portable.h"

/// The scalar steps of attention, shared by the kernels and their oracle.
namespace lockstep::kernels {

constexpr double kLog2E = 0x1.71547652b82fep+0;

/// Below 2^this, weights are 0.
template <class T>
constexpr T kLeastExponent = T(-125);

LOCKSTEP_PORTABLE float rint(float x) { return __builtin_rintf(x); }
LOCKSTEP_PORTABLE double rint(double x) { return __builtin_rint(x); }

/// 2^n, 0 where it is too small. NaN gives NaN or any number.
template <class T>
LOCKSTEP_PORTABLE T rescaling(T n) {
  return n < kLeastExponent<T> ? T(0) : elementary::two_to(n);
}

/// 2^(y - highest) for an integer `highest` that y exceeds by 1/2 at most.
template <class T>
LOCKSTEP_PORTABLE T weight(T y, T highest) {
  const T n = rint(y), exponent = n - highest;
  const T power = elementary::exp2_near_zero(y - n) * elementary::two_to(exponent);
  return exponent < kLeastExponent<T> ? T(0) : power;
}

/// 2^x for x that are at most a little above 0.
template <class T>
LOCKSTEP_PORTABLE T probability(T x) {
  const T n = rint(x), bounded = n > T(126) ? T(126) : n;
  const T power = elementary::exp2_near_zero(x - n) * elementary::two_to(bounded);
  return n < kLeastExponent<T> ? T(0) : power;
}

/// The logarithm to base 2 of denominator * 2^highest.
template <class T>
LOCKSTEP_PORTABLE T log_sum_of(T denominator, T highest) {
  return highest + elementary::log(denominator) * static_cast<T>(kLog2E);
}

}  // namespace lockstep::kernels

#pragma once
#include <cmath>

#include "runtime/kernels/sums/integer_sum_loops.h"

/// What integer_sum_loops.h computes, one number after the other.
namespace lockstep::kernels {

/// The sum itself: high * 2^32 + low.
__extension__ using WideInteger = __int128;

template <class T>
WideInteger scaled_squares_oracle(int64_t count, const T* x, double scale) {
  WideInteger sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = std::abs(static_cast<double>(x[i]) * scale);
    const auto integer =
        static_cast<WideInteger>(value <= loops::WideSum::kLimit ? std::rint(value) : loops::WideSum::kLimit);
    sum += integer * integer;
  }
  return sum;
}

template <class T>
T absolute_maximum_oracle(int64_t count, const T* x) {
  T maximum = 0;
  for (int64_t i = 0; i < count && !std::isnan(maximum); ++i)
    if (!(std::abs(x[i]) <= maximum)) maximum = std::abs(x[i]);
  return maximum;
}

}  // namespace lockstep::kernels

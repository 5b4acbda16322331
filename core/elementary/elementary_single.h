#pragma once
#include "core/elementary/portable.h"

/// exp, normal_exp, exp2, log and tanh in single precision; see core/elementary/elementary.h for errors and special
/// values. Free of branches, so that a loop over them vectorises. Coefficients: core/elementary/elementary_fit.py.
namespace lockstep::elementary {
namespace detail {

/// c0 + x (c1 + x (c2 + ...)), one chain of fma from the last coefficient.
template <class T>
LOCKSTEP_PORTABLE T polynomial(T, T last) {
  return last;
}
template <class T, class... Rest>
LOCKSTEP_PORTABLE T polynomial(T x, T first, Rest... rest) {
  return portable::fma(polynomial(x, rest...), x, first);
}

/// x * 2^n for -254 <= n <= 254, rounded at most once (when the result is subnormal).
LOCKSTEP_PORTABLE float scale(float x, int n) {
  const int half = n >> 1;
  const auto low = portable::bits<float>((static_cast<uint32_t>(half) + 127u) << 23);
  const auto high = portable::bits<float>((static_cast<uint32_t>(n - half) + 127u) << 23);
  return x * low * high;
}

/// Adding 1.5 * 2^23 rounds a float below 2^22 to the nearest integer, found in the low bits of the sum.
inline constexpr float kRoundSingle = 0x1.8p23f;
LOCKSTEP_PORTABLE int rounded_integer(float shifted) {
  return static_cast<int>(portable::bits<uint32_t>(shifted) - 0x4b400000u);
}

/// 2^n for such a sum of n, -126 <= n <= 127.
LOCKSTEP_PORTABLE float power_of_two(float shifted) {
  return portable::bits<float>((portable::bits<uint32_t>(shifted) << 23) + 0x3f800000u);
}
inline constexpr float kInfinity = __builtin_huge_valf();

/// e^r for |r| <= 0.35: 1 + (r + r^2 q(r)).
LOCKSTEP_PORTABLE float exp_near_zero(float r) {
  const float q =
      polynomial(r, 0x1p-1f, 0x1.555556p-3f, 0x1.5554e8p-5f, 0x1.1110ep-7f, 0x1.6d43bp-10f, 0x1.a1256cp-13f);
  return portable::fma(r * r, q, r) + 1.0f;
}

/// e^x = value * 2^n, where `shifted` is 1.5 * 2^23 + n.
template <class T>
struct ReducedExp {
  T value, shifted;
};
/// n = rint(x / ln 2), r = x - n ln 2 in two steps (the first exact), value = e^r.
LOCKSTEP_PORTABLE ReducedExp<float> reduced_exp(float x) {
  const float shifted = portable::fma(x, 0x1.715476p+0f, kRoundSingle);
  const float n = shifted - kRoundSingle;
  const float r = portable::fma(n, 0x1.bd0106p-13f, portable::fma(n, -0x1.63p-1f, x));
  return {exp_near_zero(r), shifted};
}

}  // namespace detail

/// 2^n for integers -126 <= n <= 127; any number for others.
LOCKSTEP_PORTABLE float two_to(float n) { return detail::power_of_two(n + detail::kRoundSingle); }

LOCKSTEP_PORTABLE float exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const auto reduced = detail::reduced_exp(x);
  return detail::scale(reduced.value, detail::rounded_integer(reduced.shifted));
}

/// e^x with its bits for -86 <= x <= 88; 0 below, infinity above. Without subnormal results it takes two thirds of the
/// time.
LOCKSTEP_PORTABLE float normal_exp(float x) {
  const auto reduced = detail::reduced_exp(x);
  const float value = reduced.value * detail::power_of_two(reduced.shifted);
  const float bounded = x < -86.0f ? 0.0f : value;
  return x > 88.0f ? detail::kInfinity : bounded;
}

/// 2^r for |r| <= 1/2, the reduced form of softmax: no scaling, no special values.
LOCKSTEP_PORTABLE float exp2_near_zero(float r) {
  const float q = detail::polynomial(r, 0x1.62e43p-1f, 0x1.ebfbep-3f, 0x1.c6b08ep-5f, 0x1.3b2a54p-7f, 0x1.5d87cp-10f,
                                     0x1.44138ap-13f, 0x1.008a2p-16f);
  return portable::fma(r, q, 1.0f);
}

/// 2^x; exact for integers.
LOCKSTEP_PORTABLE float exp2(float x) {
  x = x > 129.0f ? 129.0f : x;
  x = x < -151.0f ? -151.0f : x;
  const float shifted = x + detail::kRoundSingle;
  const float r = x - (shifted - detail::kRoundSingle);
  return detail::scale(exp2_near_zero(r), detail::rounded_integer(shifted));
}

/// ln x for finite x >= 2^-126, nothing else checked; `exponent` is added to the exponent of x.
///
/// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); ln x = (k hi + f) + (k lo - f^2/2 + f^3 q(f)), hi + lo = ln 2;
/// the first sum is kept with its rounding error.
LOCKSTEP_PORTABLE float log_normal(float x, float exponent = 0.0f) {
  const uint32_t word = portable::bits<uint32_t>(x);
  const uint32_t offset = word - 0x3f3504f3u;
  const float k = static_cast<float>(static_cast<int32_t>(offset) >> 23) + exponent;
  const float f = portable::bits<float>(word - (offset & 0xff800000u)) - 1.0f;
  const float high = k * 0x1.63p-1f;
  const float sum = high + f;
  const float lost = (high - sum) + f;
  const float low = portable::fma(k, -0x1.bd0106p-13f, lost);
  const float q =
      detail::polynomial(f, 0x1.555556p-2f, -0x1.fffff2p-3f, 0x1.9999a8p-3f, -0x1.555c54p-3f, 0x1.249688p-3f,
                         -0x1.fdfb82p-4f, 0x1.c41b8cp-4f, -0x1.b4116ap-4f, 0x1.af581ep-4f, -0x1.fc06e2p-5f);
  const float tail = portable::fma(f * f * f, q, low);
  return sum + portable::fma(-0.5f * f, f, tail);
}

/// ln x.
LOCKSTEP_PORTABLE float log(float x) {
  const bool subnormal = x < 0x1p-126f;
  const float result = log_normal(subnormal ? x * 0x1p23f : x, subnormal ? -23.0f : 0.0f);
  const float infinity = portable::bits<float>(0x7f800000u);
  const float special = x < 0.0f ? portable::bits<float>(0x7fc00000u) : (x > 0.0f ? result : -infinity);
  return x < infinity ? special : x;  // +inf and NaN are their own logarithms
}

/// tanh x: with the sign of x, y + y^3 p(y^2) for y = |x| below 0.55, else 1 - 2 / (e^(2y) + 1).
LOCKSTEP_PORTABLE float tanh(float x) {
  const uint32_t sign = portable::bits<uint32_t>(x) & 0x80000000u;
  const float y = portable::bits<float>(portable::bits<uint32_t>(x) ^ sign);
  const float square = y * y;
  const float p = detail::polynomial(square, -0x1.555556p-2f, 0x1.111104p-3f, -0x1.ba13e6p-5f, 0x1.657366p-6f,
                                     -0x1.173324p-7f, 0x1.4a067p-9f);
  const float small = portable::fma(y * square, p, y);
  const float large = 1.0f - 2.0f / (exp(2.0f * y) + 1.0f);
  return portable::bits<float>(portable::bits<uint32_t>(y < 0.55f ? small : large) | sign);
}

}  // namespace lockstep::elementary

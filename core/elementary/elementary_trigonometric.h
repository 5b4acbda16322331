#pragma once
#include "core/elementary/elementary_single.h"
#include "core/elementary/portable.h"

/// sin and cos for every argument; see core/elementary/elementary.h for errors. Coefficients:
/// core/elementary/elementary_fit.py.
namespace lockstep::elementary {

template <class T>
struct SinCos {
  T sin, cos;
};

namespace detail {

/// x = quadrant * pi/2 + (high + low), |high| <= pi/4 (a little more after rounding), quadrant modulo 4.
struct Reduced {
  double high, low;
  uint32_t quadrant;
};

inline constexpr double kHalfPi0 = 0x1.921fb54442d18p+0;
inline constexpr double kHalfPi1 = 0x1.1a62633145c07p-54;
inline constexpr double kHalfPi2 = -0x1.f1976b7ed8fbcp-110;

/// |x| < 2^28: n = rint(2x/pi); x - n pi/2 with pi/2 in three doubles and every product kept exactly.
LOCKSTEP_PORTABLE Reduced reduce_moderate(double x) {
  const double shifted = portable::fma(x, 0x1.45f306dc9c883p-1, 0x1.8p52);
  const double n = shifted - 0x1.8p52;
  const double product0 = n * kHalfPi0, error0 = portable::fma(n, kHalfPi0, -product0);
  const double product1 = n * kHalfPi1, error1 = portable::fma(n, kHalfPi1, -product1);
  const double difference = x - product0;  // exact
  const double first = difference - error0;
  const double first_lost = (difference - first) - error0;
  const double high = first - product1;
  const double lost = ((first - high) - product1) + (first_lost - error1 - n * kHalfPi2);
  const double sum = high + lost;
  return {sum, (high - sum) + lost, static_cast<uint32_t>(portable::bits<uint64_t>(shifted)) & 3u};
}

/// 64 bits of 2/pi from fraction bit `first` (counted from 0) on; 64 zero bits stand before the first one.
LOCKSTEP_PORTABLE uint64_t two_over_pi(int first) {
  constexpr uint64_t kBits[] = {0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
                                0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu,
                                0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu,
                                0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
                                0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu};
  const int word = first >> 6, shift = first & 63;
  return shift == 0 ? kBits[word] : (kBits[word] << shift) | (kBits[word + 1] >> (64 - shift));
}

/// 2^28 <= |x| < inf (Payne and Hanek): x = m 2^e with an integer m; bits of 2/pi that only add multiples of 4 to
/// x 2/pi are left out, the next 192 are multiplied by m modulo 4.
LOCKSTEP_PORTABLE Reduced reduce_huge(double x) {
  const uint64_t word = portable::bits<uint64_t>(x);
  const uint64_t m = (word & 0x000fffffffffffffu) | 0x0010000000000000u;
  const int start = static_cast<int>((word >> 52) & 0x7ffu) - 1075 - 2 + 64;
  const uint64_t a0 = two_over_pi(start), a1 = two_over_pi(start + 64), a2 = two_over_pi(start + 128);
  const uint64_t carried = m * a1, middle = carried + portable::multiply_high(m, a2);
  const uint64_t top = m * a0 + portable::multiply_high(m, a1) + (middle < carried ? 1u : 0u);
  const uint64_t quadrant = (top + 0x2000000000000000u) >> 62;  // nearest: the fraction lies in [-1/2, 1/2)
  const auto fraction = static_cast<int64_t>((top << 2) | (middle >> 62));
  const uint64_t rest = (middle << 2) | ((m * a2) >> 62);
  // fraction and rest in units of 2^-64 and 2^-128, as a sum of doubles of falling size
  const auto upper = static_cast<double>(fraction & ~int64_t{0x7ff});
  const double lower = static_cast<double>(fraction & int64_t{0x7ff}) + static_cast<double>(rest >> 11) * 0x1p-53;
  const double turn = (upper + lower) * 0x1p-64, turn_low = ((upper - (upper + lower)) + lower) * 0x1p-64;
  const double product = turn * kHalfPi0;
  const double error = portable::fma(turn, kHalfPi0, -product) + portable::fma(turn, kHalfPi1, turn_low * kHalfPi0);
  const double high = product + error, low = (product - high) + error;
  const bool negative = (word >> 63) != 0;
  return {negative ? -high : high, negative ? -low : low,
          static_cast<uint32_t>(negative ? 0 - quadrant : quadrant) & 3u};
}

LOCKSTEP_PORTABLE Reduced reduce(double x) {
  const double size = portable::bits<double>(portable::bits<uint64_t>(x) & 0x7fffffffffffffffu);
  if (size < 0x1p-27) return {x, 0.0, 0};  // keeps -0
  if (size < 0x1p28) return reduce_moderate(x);
  if (size <= 0x1.fffffffffffffp1023) return reduce_huge(x);
  return {x - x, 0.0, 0};  // inf and NaN give NaN
}

/// sin and cos of high + low, |high| <= pi/4.
LOCKSTEP_PORTABLE SinCos<double> sin_cos_kernel(double high, double low) {
  const double z = high * high;
  const double s = polynomial(z, -0x1.5555555555555p-3, 0x1.1111111110babp-7, -0x1.a01a019e820aep-13,
                              0x1.71de37946ed6dp-19, -0x1.ae6008d114485p-26, 0x1.5e0a4fc16be59p-33);
  const double c = polynomial(z, 0x1.5555555555555p-5, -0x1.6c16c16c16963p-10, 0x1.a01a019f4ddfdp-16,
                              -0x1.27e4fa16cc2d1p-22, 0x1.1eeb67d026ec6p-29, -0x1.907cd8ff5ede7p-37);
  const double sin_tail = portable::fma(high * z, s, portable::fma(-0.5 * z, low, low));
  const double half = 0.5 * z, one_less = 1.0 - half;
  const double cos_tail = ((1.0 - one_less) - half) + portable::fma(z * z, c, -high * low);
  return {z > 0.0 ? high + sin_tail : high, one_less + cos_tail};  // -0 stays -0
}

/// The same for results in single precision: relative error below 2^-34.
LOCKSTEP_PORTABLE SinCos<double> sin_cos_kernel_short(double x) {
  const double z = x * x;
  const double s =
      polynomial(z, -0x1.555555545d0dap-3, 0x1.11110decc73fdp-7, -0x1.a013a455bd213p-13, 0x1.6dbcfb4dee452p-19);
  const double c =
      polynomial(z, 0x1.55555555027adp-5, -0x1.6c16bf534c9ebp-10, 0x1.a015c25366932p-16, -0x1.25239a9550aefp-22);
  return {z > 0.0 ? portable::fma(x * z, s, x) : x, portable::fma(z * z, c, portable::fma(-0.5, z, 1.0))};
}

/// Turns (sin, cos) by a number of quarters, modulo 4.
template <class T>
LOCKSTEP_PORTABLE SinCos<T> turn_quarters(SinCos<T> base, uint32_t quarters) {
  const T sin = (quarters & 1u) != 0 ? base.cos : base.sin;
  const T cos = (quarters & 1u) != 0 ? base.sin : base.cos;
  return {(quarters & 2u) != 0 ? -sin : sin, ((quarters + 1u) & 2u) != 0 ? -cos : cos};
}

}  // namespace detail

LOCKSTEP_PORTABLE SinCos<double> sin_cos(double x) {
  const auto reduced = detail::reduce(x);
  return detail::turn_quarters(detail::sin_cos_kernel(reduced.high, reduced.low), reduced.quadrant);
}

/// Reduced and evaluated in double precision, rounded once.
LOCKSTEP_PORTABLE SinCos<float> sin_cos(float x) {
  const auto reduced = detail::reduce(static_cast<double>(x));
  const auto base = detail::sin_cos_kernel_short(reduced.high);
  const auto turned = detail::turn_quarters(base, reduced.quadrant);
  return {static_cast<float>(turned.sin), static_cast<float>(turned.cos)};
}

template <class T>
LOCKSTEP_PORTABLE T sin(T x) {
  return sin_cos(x).sin;
}

template <class T>
LOCKSTEP_PORTABLE T cos(T x) {
  return sin_cos(x).cos;
}

/// sin and cos of 2 pi w / 2^32. The nearest quarter is taken off in integers; the rest, below 1/8 of a turn, is
/// rounded to single precision. Free of branches.
LOCKSTEP_PORTABLE SinCos<float> sin_cos_of_turns(uint32_t w) {
  const uint32_t shifted = w + 0x20000000u;
  const auto t = static_cast<float>(static_cast<int32_t>((shifted & 0x3fffffffu) - 0x20000000u)) * 0x1p-32f;
  const float z = t * t;
  const float s =
      detail::polynomial(z, 0x1.921fb6p+2f, -0x1.4abbcep+5f, 0x1.466bc2p+6f, -0x1.32ce1ep+6f, 0x1.4cb762p+5f);
  const float c =
      detail::polynomial(z, -0x1.3bd3ccp+4f, 0x1.03c1fp+6f, -0x1.55d3c2p+6f, 0x1.e1ec72p+5f, -0x1.a1e852p+4f);
  return detail::turn_quarters(SinCos<float>{t * s, portable::fma(z, c, 1.0f)}, shifted >> 30);
}

/// sin and cos of 2 pi w / 2^64, as above in double precision.
LOCKSTEP_PORTABLE SinCos<double> sin_cos_of_turns(uint64_t w) {
  const uint64_t shifted = w + 0x2000000000000000u;
  const auto fraction = static_cast<int64_t>((shifted & 0x3fffffffffffffffu) - 0x2000000000000000u);
  const double t = static_cast<double>(fraction) * 0x1p-64;
  const double z = t * t;
  const double s = detail::polynomial(z, 0x1.921fb54442d18p+2, -0x1.4abbce625be53p+5, 0x1.466bc6775aae2p+6,
                                      -0x1.32d2cce62bd85p+6, 0x1.50783487ee37dp+5, -0x1.e3074fdd8bbb6p+3,
                                      0x1.e8f432b4ce4c9p+1, -0x1.6fab3c3eb25c4p-1, 0x1.a7da70b1f459cp-4);
  const double c =
      detail::polynomial(z, -0x1.3bd3cc9be45dep+4, 0x1.03c1f081b5ac4p+6, -0x1.55d3c7e3cbff7p+6, 0x1.e1f506891ae95p+5,
                         -0x1.a6d1f2a086c9p+4, 0x1.f9d3870871194p+2, -0x1.b6de8b8e9ba08p+0, 0x1.1e745e5e09f6dp-2);
  return detail::turn_quarters(SinCos<double>{t * s, portable::fma(z, c, 1.0)}, static_cast<uint32_t>(shifted >> 62));
}

}  // namespace lockstep::elementary

#pragma once
#include "core/elementary/elementary_single.h"
#include "core/elementary/portable.h"

/// exp, normal_exp, exp2, log and tanh in double precision; see core/elementary/elementary.h for errors and special
/// values. Free of branches. Coefficients: core/elementary/elementary_fit.py.
namespace lockstep::elementary {
namespace detail {

/// x * 2^n for -2044 <= n <= 2046, rounded at most once (when the result is subnormal).
LOCKSTEP_PORTABLE double scale(double x, int n) {
  const int half = n >> 1;
  const auto low = portable::bits<double>(static_cast<uint64_t>(half + 1023) << 52);
  const auto high = portable::bits<double>(static_cast<uint64_t>(n - half + 1023) << 52);
  return x * low * high;
}

/// Adding 1.5 * 2^52 rounds a double below 2^51 to the nearest integer, found in the low bits of the sum.
inline constexpr double kRoundDouble = 0x1.8p52;
LOCKSTEP_PORTABLE int rounded_integer(double shifted) {
  return static_cast<int16_t>(portable::bits<uint64_t>(shifted));  // |n| < 2^15; NaN gives any scale, and stays NaN
}

/// 2^n for such a sum of n, -1022 <= n <= 1023.
LOCKSTEP_PORTABLE double power_of_two(double shifted) {
  return portable::bits<double>((portable::bits<uint64_t>(shifted) << 52) + 0x3ff0000000000000u);
}

/// e^r for |r| <= 0.35: 1 + (r + r^2 q(r)).
LOCKSTEP_PORTABLE double exp_near_zero(double r) {
  const double q =
      polynomial(r, 0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100bep-7, 0x1.6c16c16c162c3p-10,
                 0x1.a01a01abf85abp-13, 0x1.a01a01a6e1e2ap-16, 0x1.71de01fdbf9cap-19, 0x1.27e4db46cddd1p-22,
                 0x1.af4e554377204p-26, 0x1.1f7340dbc337ep-29);
  return portable::fma(r * r, q, r) + 1.0;
}

/// As in single precision; `shifted` is 1.5 * 2^52 + n.
LOCKSTEP_PORTABLE ReducedExp<double> reduced_exp(double x) {
  const double shifted = portable::fma(x, 0x1.71547652b82fep+0, kRoundDouble);
  const double n = shifted - kRoundDouble;
  const double r = portable::fma(n, -0x1.9ef35793c7673p-41, portable::fma(n, -0x1.62e42fefa2p-1, x));
  return {exp_near_zero(r), shifted};
}

}  // namespace detail

/// 2^n for integers -1022 <= n <= 1023; any number for others.
LOCKSTEP_PORTABLE double two_to(double n) { return detail::power_of_two(n + detail::kRoundDouble); }

LOCKSTEP_PORTABLE double exp(double x) {
  x = x > 710.0 ? 710.0 : x;
  x = x < -746.0 ? -746.0 : x;
  const auto reduced = detail::reduced_exp(x);
  return detail::scale(reduced.value, detail::rounded_integer(reduced.shifted));
}

/// e^x with its bits for -707 <= x <= 709; 0 below, infinity above.
LOCKSTEP_PORTABLE double normal_exp(double x) {
  const auto reduced = detail::reduced_exp(x);
  const double value = reduced.value * detail::power_of_two(reduced.shifted);
  const double bounded = x < -707.0 ? 0.0 : value;
  return x > 709.0 ? static_cast<double>(detail::kInfinity) : bounded;
}

/// 2^r for |r| <= 1/2: no scaling, no special values.
LOCKSTEP_PORTABLE double exp2_near_zero(double r) {
  const double q =
      detail::polynomial(r, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a0c2p-5, 0x1.3b2ab6fba4e78p-7,
                         0x1.5d87fe78a5276p-10, 0x1.430912f86bf52p-13, 0x1.ffcbfc670dcd4p-17, 0x1.62c022401b97dp-20,
                         0x1.b524fae627834p-24, 0x1.e4cf1cd08d4b8p-28, 0x1.e9d3fe3952179p-32, 0x1.c48f769ad2c46p-36);
  return portable::fma(r, q, 1.0);
}

/// 2^x; exact for integers.
LOCKSTEP_PORTABLE double exp2(double x) {
  x = x > 1025.0 ? 1025.0 : x;
  x = x < -1076.0 ? -1076.0 : x;
  const double shifted = x + detail::kRoundDouble;
  const double r = x - (shifted - detail::kRoundDouble);
  return detail::scale(exp2_near_zero(r), detail::rounded_integer(shifted));
}

/// ln x for finite x >= 2^-1022, nothing else checked; `exponent` is added to the exponent of x.
///
/// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); with s = f / (2 + f), ln(1 + f) = 2 artanh(s)
/// = f - (f^2/2 - s (f^2/2 + R(s^2))), R(z) = 2 artanh(s)/s - 2; ln 2 = hi + lo, and (k hi + f) keeps its rounding
/// error.
LOCKSTEP_PORTABLE double log_normal(double x, double exponent = 0.0) {
  const uint64_t word = portable::bits<uint64_t>(x);
  const uint64_t offset = word - 0x3fe6a09e667f3bcdu;
  const double k = static_cast<double>(static_cast<int64_t>(offset) >> 52) + exponent;
  const double f = portable::bits<double>(word - (offset & 0xfff0000000000000u)) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double r =
      z * detail::polynomial(z, 0x1.5555555555555p-1, 0x1.9999999999a39p-2, 0x1.2492492476a1ap-2, 0x1.c71c7201a55d7p-3,
                             0x1.745cf8e4bba1bp-3, 0x1.3b1c3c1c81c8fp-3, 0x1.0fbde0f4ad17bp-3, 0x1.0c0aff044a97p-3);
  const double high = k * 0x1.62e42fefa2p-1;
  const double sum = high + f;
  const double low = portable::fma(k, 0x1.9ef35793c7673p-41, (high - sum) + f);
  const double half_square = 0.5 * f * f;
  return sum - (half_square - portable::fma(s, half_square + r, low));
}

/// ln x.
LOCKSTEP_PORTABLE double log(double x) {
  const bool subnormal = x < 0x1p-1022;
  const double result = log_normal(subnormal ? x * 0x1p52 : x, subnormal ? -52.0 : 0.0);
  const double infinity = portable::bits<double>(uint64_t{0x7ff0000000000000});
  const double nan = portable::bits<double>(uint64_t{0x7ff8000000000000});
  const double special = x < 0.0 ? nan : (x > 0.0 ? result : -infinity);
  return x < infinity ? special : x;  // +inf and NaN are their own logarithms
}

/// tanh x: with the sign of x, y + y^3 p(y^2) for y = |x| below 0.55, else 1 - 2 / (e^(2y) + 1).
LOCKSTEP_PORTABLE double tanh(double x) {
  const uint64_t sign = portable::bits<uint64_t>(x) & 0x8000000000000000u;
  const double y = portable::bits<double>(portable::bits<uint64_t>(x) ^ sign);
  const double square = y * y;
  const double p = detail::polynomial(square, -0x1.5555555555555p-2, 0x1.1111111111109p-3, -0x1.ba1ba1ba1a55cp-5,
                                      0x1.664f488221f28p-6, -0x1.226e3536f1c29p-7, 0x1.d6d3c54a88ff3p-9,
                                      -0x1.7da24f432dc63p-10, 0x1.354704e918accp-11, -0x1.f410ef2bff629p-13,
                                      0x1.8c5535f23bd93p-14, -0x1.1a295860f1c35p-15, 0x1.067132e90c259p-17);
  const double small = portable::fma(y * square, p, y);
  const double large = 1.0 - 2.0 / (exp(2.0 * y) + 1.0);
  return portable::bits<double>(portable::bits<uint64_t>(y < 0.55 ? small : large) | sign);
}

}  // namespace lockstep::elementary

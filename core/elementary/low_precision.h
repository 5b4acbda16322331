#pragma once
#include "core/elementary/portable.h"

/// Numbers of eight and of four bits: what is nearest to a float, the codes that hold it, and the scales by which
/// tensors are brought into their range (docs/low_precision.md). Exact arithmetic, free of branches, so that a loop
/// over it vectorises and every instruction set gives the same bits.
namespace lockstep::elementary {

/// Numbers f 2^e with `fraction_bits` bits of f behind its leading one and e >= least_exponent, subnormal numbers
/// below, up to `largest`. Eight-bit integers are one, too: all of them have the exponent of 64.
struct Grid {
  int fraction_bits, least_exponent;
  float largest;
  int largest_exponent;
};

/// E4M3 and E5M2: P. Micikevicius et al., "FP8 formats for deep learning", 2022, table 1; E2M1: OCP Microscaling
/// Formats v1.0, table 4. int8 is symmetric: -128 is not used.
inline constexpr Grid kE4m3{3, -6, 448, 8};
inline constexpr Grid kE5m2{2, -14, 57344, 15};
inline constexpr Grid kE2m1{1, 0, 6, 2};
inline constexpr Grid kInt8{6, 6, 127, 6};

/// The grids by number, as arguments of ops name them.
enum class NumberFormat : int64_t { kE4m3, kE5m2, kE2m1, kInt8 };
inline constexpr Grid kGrids[] = {kE4m3, kE5m2, kE2m1, kInt8};
constexpr Grid grid_of(NumberFormat format) { return kGrids[static_cast<int64_t>(format)]; }

namespace detail {

inline constexpr uint32_t kSignBit = 0x80000000u, kExponentBits = 0x7f800000u;

/// 2^n, -149 <= n <= 127.
LOCKSTEP_PORTABLE float two_to(int n) {
  return portable::bits<float>(n < -126 ? 1u << (n + 149) : static_cast<uint32_t>(n + 127) << 23);
}

}  // namespace detail

/// The grid's number that is nearest to x, of two the even one. Saturates: what is larger than the largest one becomes
/// that, infinities included. NaN is NaN; zeros keep their sign.
LOCKSTEP_PORTABLE float nearest(Grid grid, float x) {
  const auto sign = portable::bits<uint32_t>(x) & detail::kSignBit;
  const float any = portable::absolute(x), size = any > grid.largest ? grid.largest : any;
  const auto least = static_cast<uint32_t>(grid.least_exponent + 127) << 23;
  const auto own = portable::bits<uint32_t>(size) & detail::kExponentBits, exponent = own < least ? least : own;
  // A number whose last bit is the grid's step at x: the sum is rounded to whole steps.
  const auto shift = portable::bits<float>(exponent + (static_cast<uint32_t>(23 - grid.fraction_bits) << 23));
  return portable::bits<float>(portable::bits<uint32_t>((size + shift) - shift) | sign);
}

/// By which a tensor with elements up to `maximum` in magnitude is multiplied, so that the largest one becomes the
/// grid's largest; with `power_of_two` rounded down to one. In double, then rounded to float, as torchao's
/// amax_to_scale() does (torchao/float8/float8_utils.py): maxima below 1e-12 count as that. 0 of infinity, NaN of NaN.
LOCKSTEP_PORTABLE float scale_for(Grid grid, float maximum, bool power_of_two) {
  constexpr double kLeast = 1e-12;
  const double wide = maximum, bounded = wide < kLeast ? kLeast : wide;
  const auto scale = static_cast<float>(static_cast<double>(grid.largest) / bounded);
  const auto bits = portable::bits<uint32_t>(scale);
  return scale > 0 && power_of_two ? portable::bits<float>(bits & detail::kExponentBits) : scale;
}

/// The exponent of the scale that a block shares whose largest magnitude is `maximum` (OCP Microscaling Formats v1.0,
/// section 6.3): floor(log2(maximum)) less the exponent of the grid's largest number, within what E8M0 holds, -127 to
/// 127. REQUIRES: maximum is finite and not negative.
LOCKSTEP_PORTABLE int shared_exponent(Grid grid, float maximum) {
  const int own = static_cast<int>(portable::bits<uint32_t>(maximum) >> 23) - 127;  // of subnormal numbers too large
  const int exponent = own - grid.largest_exponent;
  return exponent < -127 ? -127 : exponent;
}

/// By which a block's numbers are multiplied before and after they are rounded. A block with an infinity or a NaN is
/// NaN throughout.
struct BlockScale {
  float down, up;
};

/// Of the block's largest magnitude, as bits, which are ordered like magnitudes, NaN last.
LOCKSTEP_PORTABLE BlockScale block_scale(Grid grid, uint32_t maximum) {
  const bool finite = maximum < detail::kExponentBits;
  const int exponent = shared_exponent(grid, portable::bits<float>(finite ? maximum : 0u));
  return {detail::two_to(-exponent), finite ? detail::two_to(exponent) : portable::bits<float>(0x7fc00000u)};
}

/// Of `count` numbers that lie `stride` apart.
LOCKSTEP_PORTABLE BlockScale block_scale(Grid grid, int64_t count, int64_t stride, const float* x) {
  uint32_t maximum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto size = portable::bits<uint32_t>(portable::absolute(x[i * stride]));
    maximum = size > maximum ? size : maximum;
  }
  return block_scale(grid, maximum);
}

/// x as a block holds it whose scale is 2^exponent.
LOCKSTEP_PORTABLE float nearest_in_block(Grid grid, int exponent, float x) {
  return nearest(grid, x * detail::two_to(-exponent)) * detail::two_to(exponent);
}

/// The code of a number of the grid E4M3 or E5M2; of any NaN the one with all bits but the sign's.
LOCKSTEP_PORTABLE uint8_t float8_code(Grid grid, float x) {
  const auto bits = portable::bits<uint32_t>(x), magnitude = bits & ~detail::kSignBit;
  const auto sign = bits >> 24 & 0x80u;
  const auto bias = static_cast<uint32_t>(127 + grid.least_exponent - 1) << 23;
  // A step of the subnormal numbers is the unit of the code's last bit.
  const float steps = portable::absolute(x) * detail::two_to(grid.fraction_bits - grid.least_exponent);
  const bool subnormal = magnitude < bias + (1u << 23), is_nan = x != x;
  const auto small = static_cast<uint32_t>(subnormal ? steps : 0.0f);
  const auto normal = (magnitude - bias) >> (23 - grid.fraction_bits);
  return static_cast<uint8_t>(is_nan ? 0x7fu : sign | (subnormal ? small : normal));
}

/// The number that a code stands for: E5M2's codes of infinities are those, and what is above them, like E4M3's of all
/// bits, is NaN.
LOCKSTEP_PORTABLE float float8_number(Grid grid, uint8_t code) {
  const auto sign = (code & 0x80u) << 24;
  const uint32_t rest = code & 0x7fu, exponent = rest >> grid.fraction_bits;
  const auto bias = static_cast<uint32_t>(127 + grid.least_exponent - 1) << 23;
  const float small = static_cast<float>(rest) * detail::two_to(grid.least_exponent - grid.fraction_bits);
  const auto normal = (rest << (23 - grid.fraction_bits)) + bias;
  const bool has_infinities = grid.fraction_bits == 2;
  const uint32_t beyond = has_infinities ? 0x7cu : 0x7fu;  // the first code that is no finite number
  const auto other = has_infinities && rest == beyond ? detail::kExponentBits : 0x7fc00000u;
  const auto finite = exponent == 0 ? portable::bits<uint32_t>(small) : normal;
  return portable::bits<float>((rest >= beyond ? other : finite) | sign);
}

}  // namespace lockstep::elementary

#pragma once
#include "core/elementary/portable.h"

/// float to bfloat16 and half, rounded to nearest even, as bits, and back. REQUIRES, of to_...: no NaN.
namespace lockstep::elementary {

LOCKSTEP_PORTABLE uint16_t to_bfloat16(float x) {
  const auto word = portable::bits<uint32_t>(x);
  return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

LOCKSTEP_PORTABLE uint16_t to_half(float x) {
  const auto word = portable::bits<uint32_t>(x);
  const uint32_t sign = (word >> 16) & 0x8000u, size = word & 0x7fffffffu;
  const uint32_t normal = (size - 0x38000000u + 0x0fffu + ((size >> 13) & 1u)) >> 13;
  // Below 2^-14: adding 1/2, whose ulp is the least subnormal half, rounds to a multiple of it.
  const uint32_t subnormal = portable::bits<uint32_t>(portable::bits<float>(size) + 0.5f) - 0x3f000000u;
  const uint32_t finite = size < 0x38800000u ? subnormal : normal;
  return static_cast<uint16_t>(sign | (size >= 0x477ff000u ? 0x7c00u : finite));  // 65520 and above: infinity
}

LOCKSTEP_PORTABLE float from_bfloat16(uint16_t bits) {
  return portable::bits<float>(static_cast<uint32_t>(bits) << 16);
}

LOCKSTEP_PORTABLE float from_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, size = bits & 0x7fffu;
  const float subnormal = static_cast<float>(static_cast<int32_t>(size)) * 0x1p-24f;
  const uint32_t normal = (size << 13) + (size >= 0x7c00u ? 0x70000000u : 0x38000000u);
  return portable::bits<float>((size < 0x400u ? portable::bits<uint32_t>(subnormal) : normal) | sign);
}

}  // namespace lockstep::elementary

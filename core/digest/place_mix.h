#pragma once
#include <cstdint>

#include "core/elementary/portable.h"

/// What an element adds to a PlaceDigest, for CPU and GPU alike.
namespace lockstep::place {

// The constants and shifts of SplitMix64: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014, section 5; the finalizer is D. Stafford's variant 13.
inline constexpr uint64_t kStep = 0x9E3779B97F4A7C15, kFirst = 0xBF58476D1CE4E5B9, kSecond = 0x94D049BB133111EB;

LOCKSTEP_PORTABLE uint64_t mixed(uint64_t word) {
  word = (word ^ (word >> 30)) * kFirst;
  word = (word ^ (word >> 27)) * kSecond;
  return word ^ (word >> 31);
}

/// Adds the element with these bits at this index of the tensor that `key` stands for.
LOCKSTEP_PORTABLE void add(uint64_t key, uint64_t index, uint32_t bits, uint64_t& low, uint64_t& high) {
  const auto place = mixed(key + index * kStep);
  const auto mix = mixed(place ^ (bits * kSecond));
  low += mix;
  high += mixed(mix + place);
}

}  // namespace lockstep::place

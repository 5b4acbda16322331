#include "core/digest/place_digest.h"

#include <cstring>

#include "core/error.h"

namespace lockstep {
namespace {

// The constants and shifts of SplitMix64: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014, section 5; the finalizer is D. Stafford's variant 13.
constexpr uint64_t kStep = 0x9E3779B97F4A7C15, kFirst = 0xBF58476D1CE4E5B9, kSecond = 0x94D049BB133111EB;

uint64_t mixed(uint64_t word) {
  word = (word ^ (word >> 30)) * kFirst;
  word = (word ^ (word >> 27)) * kSecond;
  return word ^ (word >> 31);
}

}  // namespace

uint64_t PlaceDigest::key(std::string_view tensor) { return digest(tensor).low; }

void PlaceDigest::add(uint64_t key, uint64_t first, std::span<const std::byte> elements) {
  LOCKSTEP_CHECK_EQ(elements.size() % sizeof(uint32_t), 0U);
  const size_t count = elements.size() / sizeof(uint32_t);
  Digest sum;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, elements.data() + i * sizeof bits, sizeof bits);
    const auto place = mixed(key + (first + i) * kStep);
    const auto mix = mixed(place ^ (bits * kSecond));
    sum.low += mix;
    sum.high += mixed(mix + place);
  }
  add(sum);
}

void PlaceDigest::add(const Digest& sum) {
  sum_.low += sum.low;
  sum_.high += sum.high;
}

}  // namespace lockstep

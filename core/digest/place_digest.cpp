#include "core/digest/place_digest.h"

#include <cstring>

#include "core/digest/place_mix.h"
#include "core/error.h"

namespace lockstep {

uint64_t PlaceDigest::key(std::string_view tensor) { return digest(tensor).low; }

void PlaceDigest::add(uint64_t key, uint64_t first, std::span<const std::byte> elements) {
  LOCKSTEP_CHECK_EQ(elements.size() % sizeof(uint32_t), 0U);
  const size_t count = elements.size() / sizeof(uint32_t);
  Digest sum;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, elements.data() + i * sizeof bits, sizeof bits);
    place::add(key, first + i, bits, sum.low, sum.high);
  }
  add(sum);
}

void PlaceDigest::add(const Digest& sum) {
  sum_.low += sum.low;
  sum_.high += sum.high;
}

}  // namespace lockstep

#pragma once
#include "core/digest/xxh3_short.h"

/// XXH3-128 with seed 0 of a piece of memory, in functions for CPU and GPU alike; the same as digest(), which is
/// faster on a CPU. Longer pieces are read in stripes of 64 bytes by eight lanes, which a GPU gives to eight threads.
namespace lockstep::xxh3 {

inline constexpr uint32_t kLanes = 8, kStripeBytes = 64, kStripesInBlock = 16, kMostShort = 240;

/// What a lane's sum starts with.
LOCKSTEP_PORTABLE uint64_t first_sum(uint32_t lane) {
  static constexpr uint64_t kSums[kLanes] = {kPrime32Third,  kPrime64First,  kPrime64Second, kPrime64Third,
                                             kPrime64Fourth, kPrime32Second, kPrime64Fifth,  kPrime32First};
  return kSums[lane];
}

/// A lane's sum with its word of a stripe, its neighbour's (that of lane ^ 1), and its word of the secret.
LOCKSTEP_PORTABLE uint64_t sum_with(uint64_t sum, uint64_t word, uint64_t neighbour, uint64_t key) {
  const uint64_t keyed = word ^ key;
  return sum + neighbour + (keyed & 0xFFFFFFFF) * (keyed >> 32);
}

/// A lane's sum after a block of stripes.
LOCKSTEP_PORTABLE uint64_t scrambled(uint64_t sum, uint64_t key) { return (sum ^ sum >> 47 ^ key) * kPrime32First; }

/// All lanes in one thread.
class AllLanes {
 public:
  LOCKSTEP_PORTABLE AllLanes() {
    for (uint32_t lane = 0; lane < kLanes; ++lane) sums_[lane] = first_sum(lane);
  }
  /// A stripe, with the secret's bytes from `place` on.
  LOCKSTEP_PORTABLE void add(const Byte* stripe, uint32_t place) {
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      sums_[lane] =
          sum_with(sums_[lane], read64(stripe + 8 * lane), read64(stripe + 8 * (lane ^ 1)), secret64(place + 8 * lane));
  }
  LOCKSTEP_PORTABLE void scramble(uint32_t place) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) sums_[lane] = scrambled(sums_[lane], secret64(place + 8 * lane));
  }
  LOCKSTEP_PORTABLE uint64_t sum(uint32_t lane) const { return sums_[lane]; }

 private:
  uint64_t sums_[kLanes];
};

/// One half of the digest of all lanes' sums.
template <class Lanes>
LOCKSTEP_PORTABLE uint64_t merged(const Lanes& lanes, uint32_t place, uint64_t start) {
  for (uint32_t lane = 0; lane < kLanes; lane += 2)
    start += folded_product(lanes.sum(lane) ^ secret64(place + 8 * lane),
                            lanes.sum(lane + 1) ^ secret64(place + 8 * lane + 8));
  return mixed(start);
}

/// `lanes` has add, scramble and sum as AllLanes does, and has seen nothing. REQUIRES: size > kMostShort.
template <class Lanes>
LOCKSTEP_PORTABLE Digest of_long(const Byte* bytes, uint32_t size, Lanes lanes) {
  constexpr uint32_t kBlockBytes = kStripeBytes * kStripesInBlock;
  const uint32_t blocks = (size - 1) / kBlockBytes, rest = (size - 1) % kBlockBytes / kStripeBytes;
  for (uint32_t block = 0; block < blocks; ++block) {
    for (uint32_t s = 0; s < kStripesInBlock; ++s) lanes.add(bytes + block * kBlockBytes + s * kStripeBytes, 8 * s);
    lanes.scramble(kSecretBytes - kStripeBytes);
  }
  for (uint32_t s = 0; s < rest; ++s) lanes.add(bytes + blocks * kBlockBytes + s * kStripeBytes, 8 * s);
  lanes.add(bytes + size - kStripeBytes, kSecretBytes - kStripeBytes - 7);
  return {merged(lanes, kSecretBytes - kStripeBytes - 11, ~(size * kPrime64Second)),
          merged(lanes, 11, size * kPrime64First)};
}

/// In one thread.
LOCKSTEP_PORTABLE Digest of_piece(const Byte* bytes, uint32_t size) {
  return size <= kMostShort ? of_short(bytes, size) : of_long(bytes, size, AllLanes());
}

}  // namespace lockstep::xxh3

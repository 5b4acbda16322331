#pragma once
#include "core/digest/digest.h"
#include "core/digest/xxh3_words.h"

/// XXH3-128 of up to 240 bytes: a way of its own for each class of lengths. See core/digest/xxh3_piece.h.
namespace lockstep::xxh3 {

LOCKSTEP_PORTABLE Digest of_nothing() {
  return {mixed_as_xxh64(secret64(80) ^ secret64(88)), mixed_as_xxh64(secret64(64) ^ secret64(72))};
}

LOCKSTEP_PORTABLE Digest of_1_to_3(const Byte* bytes, uint32_t size) {
  const uint32_t low = static_cast<uint32_t>(bytes[0]) << 16 | static_cast<uint32_t>(bytes[size >> 1]) << 24 |
                       bytes[size - 1] | size << 8;
  const uint32_t turned = swapped(low), high = turned << 13 | turned >> 19;
  return {mixed_as_xxh64(high ^ static_cast<uint64_t>(secret32(8) ^ secret32(12))),
          mixed_as_xxh64(low ^ static_cast<uint64_t>(secret32(0) ^ secret32(4)))};
}

LOCKSTEP_PORTABLE Digest of_4_to_8(const Byte* bytes, uint32_t size) {
  const uint64_t input = read32(bytes) | static_cast<uint64_t>(read32(bytes + size - 4)) << 32;
  const uint64_t keyed = input ^ secret64(16) ^ secret64(24), factor = kPrime64First + (size << 2);
  uint64_t low = keyed * factor, high = portable::multiply_high(keyed, factor);
  high += low << 1;
  low ^= high >> 3;
  low = (low ^ low >> 35) * kMixSecond;
  return {mixed(high), low ^ low >> 28};
}

LOCKSTEP_PORTABLE Digest of_9_to_16(const Byte* bytes, uint32_t size) {
  const uint64_t first = read64(bytes);
  uint64_t last = read64(bytes + size - 8);
  const uint64_t keyed = first ^ last ^ secret64(32) ^ secret64(40);
  uint64_t low = keyed * kPrime64First, high = portable::multiply_high(keyed, kPrime64First);
  low += static_cast<uint64_t>(size - 1) << 54;
  last ^= secret64(48) ^ secret64(56);
  high += last + static_cast<uint64_t>(static_cast<uint32_t>(last)) * (kPrime32Second - 1);
  low ^= swapped(high);
  return {mixed(portable::multiply_high(low, kPrime64Second) + high * kPrime64Second), mixed(low * kPrime64Second)};
}

/// The two running words of what has 17 bytes or more, and up to 240.
struct Mixture {
  uint64_t low, high = 0;

  LOCKSTEP_PORTABLE static uint64_t product(const Byte* bytes, uint32_t place) {
    return folded_product(read64(bytes) ^ secret64(place), read64(bytes + 8) ^ secret64(place + 8));
  }
  /// Two times 16 bytes, with 32 bytes of the secret.
  LOCKSTEP_PORTABLE void add(const Byte* left, const Byte* right, uint32_t place) {
    low = (low + product(left, place)) ^ (read64(right) + read64(right + 8));
    high = (high + product(right, place + 16)) ^ (read64(left) + read64(left + 8));
  }
  LOCKSTEP_PORTABLE Digest digest(uint32_t size) const {
    return {0 - mixed(low * kPrime64First + high * kPrime64Fourth + size * kPrime64Second), mixed(low + high)};
  }
};

/// From both ends to the middle.
LOCKSTEP_PORTABLE Digest of_17_to_128(const Byte* bytes, uint32_t size) {
  Mixture mixture{size * kPrime64First};
  for (uint32_t pair = (size - 1) / 32 + 1; pair-- > 0;)
    mixture.add(bytes + 16 * pair, bytes + size - 16 * (pair + 1), 32 * pair);
  return mixture.digest(size);
}

LOCKSTEP_PORTABLE Digest of_129_to_240(const Byte* bytes, uint32_t size) {
  Mixture mixture{size * kPrime64First};
  for (uint32_t pair = 0; pair < 4; ++pair) mixture.add(bytes + 32 * pair, bytes + 32 * pair + 16, 32 * pair);
  mixture.low = mixed(mixture.low);
  mixture.high = mixed(mixture.high);
  for (uint32_t pair = 4; pair < size / 32; ++pair)
    mixture.add(bytes + 32 * pair, bytes + 32 * pair + 16, 3 + 32 * (pair - 4));
  mixture.add(bytes + size - 16, bytes + size - 32, 103);
  return mixture.digest(size);
}

/// REQUIRES: size <= 240.
LOCKSTEP_PORTABLE Digest of_short(const Byte* bytes, uint32_t size) {
  if (size == 0) return of_nothing();
  if (size <= 3) return of_1_to_3(bytes, size);
  if (size <= 8) return of_4_to_8(bytes, size);
  if (size <= 16) return of_9_to_16(bytes, size);
  return size <= 128 ? of_17_to_128(bytes, size) : of_129_to_240(bytes, size);
}

}  // namespace lockstep::xxh3

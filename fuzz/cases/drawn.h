#pragma once
#include <cstdint>

namespace lockstep::testing {

/// Of all that cases have drawn so far, in this process: equal digests are equal cases, whatever compiler and machine
/// drew them.
inline uint64_t& drawn_digest() {
  static uint64_t digest = 0xcbf29ce484222325u;
  return digest;
}

template <class Number>
inline Number drawn(Number value) {
  auto& digest = drawn_digest();
  digest = (digest ^ static_cast<uint64_t>(value)) * 0x100000001b3u;
  return value;
}

}  // namespace lockstep::testing

#pragma once
#include "core/elementary/portable.h"

/// Counter-based random words: Philox4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// SC'11). A pure function of (key, counter); no state, no order of drawing. The same bits on every CPU and GPU.
namespace lockstep::rng {

/// The seed of a run.
struct Key {
  uint64_t seed;
};

/// Names one block of four words: `stream` says which draw (rng/stream.h), `index` where in it.
struct Counter {
  uint64_t index;
  uint64_t stream;
};

/// Four independent uniform 32-bit words.
struct Words {
  uint32_t word[4];

  /// Words 2i and 2i + 1 as one 64-bit word, the first one low.
  LOCKSTEP_PORTABLE uint64_t pair(int i) const {
    return static_cast<uint64_t>(word[2 * i + 1]) << 32 | static_cast<uint64_t>(word[2 * i]);
  }
};

namespace detail {
LOCKSTEP_PORTABLE void philox_round(uint32_t (&c)[4], uint32_t key0, uint32_t key1) {
  const uint64_t product0 = static_cast<uint64_t>(c[0]) * 0xd2511f53u;
  const uint64_t product1 = static_cast<uint64_t>(c[2]) * 0xcd9e8d57u;
  c[0] = static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ key0;
  c[1] = static_cast<uint32_t>(product1);
  c[2] = static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ key1;
  c[3] = static_cast<uint32_t>(product0);
}

/// Rounds kFirst and kFirst + 1; the key grows by a constant each round.
template <uint32_t kFirst>
LOCKSTEP_PORTABLE void two_philox_rounds(uint32_t (&c)[4], uint32_t key0, uint32_t key1) {
  philox_round(c, key0 + kFirst * 0x9e3779b9u, key1 + kFirst * 0xbb67ae85u);
  philox_round(c, key0 + (kFirst + 1) * 0x9e3779b9u, key1 + (kFirst + 1) * 0xbb67ae85u);
}
}  // namespace detail

/// The words of `counter` under `key`. In Random123's notation counter = {index low, index high, stream low, stream
/// high} and key = {seed low, seed high}.
LOCKSTEP_PORTABLE Words words(Key key, Counter counter) {
  const auto key0 = static_cast<uint32_t>(key.seed), key1 = static_cast<uint32_t>(key.seed >> 32);
  uint32_t c[4] = {static_cast<uint32_t>(counter.index), static_cast<uint32_t>(counter.index >> 32),
                   static_cast<uint32_t>(counter.stream), static_cast<uint32_t>(counter.stream >> 32)};
  detail::two_philox_rounds<0>(c, key0, key1);  // written out: a loop inside would keep callers' loops from vectorising
  detail::two_philox_rounds<2>(c, key0, key1);
  detail::two_philox_rounds<4>(c, key0, key1);
  detail::two_philox_rounds<6>(c, key0, key1);
  detail::two_philox_rounds<8>(c, key0, key1);
  return {{c[0], c[1], c[2], c[3]}};
}

}  // namespace lockstep::rng

#pragma once
#include <cstdint>
#include <vector>

#include "rng/philox.h"

namespace lockstep::rng {

/// A pseudo-random permutation of 0 .. n-1, evaluated at one index: the order of the data, with nothing stored or
/// shuffled.
///
/// n > 256: a Feistel network of 8 rounds over the bits of n - 1, the round function is Philox; results >= n are fed in
/// again (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002), fewer than 2 passes on average.
/// n <= 256, where such a network is a poor shuffle: Fisher and Yates on a table of n entries.
class Permutation {
 public:
  /// 1 <= n <= 2^62, else BadInput.
  Permutation(Key key, uint64_t stream, uint64_t n);

  /// Where index i < n goes; InternalError when i >= n.
  uint64_t operator()(uint64_t i) const;

  uint64_t size() const { return n_; }

 private:
  uint64_t network(uint64_t value) const;

  Key key_;
  uint64_t stream_;
  uint64_t n_;
  int high_bits_ = 0, low_bits_ = 0;
  std::vector<uint8_t> table_;
};

}  // namespace lockstep::rng

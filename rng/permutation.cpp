#include "rng/permutation.h"

#include <bit>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace lockstep::rng {
namespace {

constexpr uint64_t kTableLimit = 256;
constexpr int kRounds = 8;  // even, so that the halves end where they began

std::vector<uint8_t> shuffled(Key key, uint64_t stream, uint64_t n) {
  std::vector<uint8_t> table(n);
  std::iota(table.begin(), table.end(), uint8_t{0});
  for (uint64_t i = n - 1; i > 0; --i) {
    std::swap(table[i], table[portable::multiply_high(words(key, {i, stream}).pair(0), i + 1)]);
  }
  return table;
}

}  // namespace

Permutation::Permutation(Key key, uint64_t stream, uint64_t n) : key_(key), stream_(stream), n_(n) {
  if (n < 1 || n > uint64_t{1} << 62) fail<BadInput>("permutation of {} items: expected 1 to 2^62", n);
  if (n <= kTableLimit) {
    table_ = shuffled(key, stream, n);
    return;
  }
  const int bits = 64 - std::countl_zero(n - 1);
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
}

uint64_t Permutation::operator()(uint64_t i) const {
  LOCKSTEP_CHECK(i < n_, "index {} of a permutation of {}", i, n_);
  if (!table_.empty()) return table_[i];
  do {
    i = network(i);
  } while (i >= n_);
  return i;
}

/// A permutation of all values of high_bits_ + low_bits_ bits: each round adds a function of one half to the other
/// (bitwise), then the halves change places.
uint64_t Permutation::network(uint64_t value) const {
  int bits = high_bits_, other_bits = low_bits_;
  uint64_t half = value >> low_bits_, other = value & ((uint64_t{1} << low_bits_) - 1);
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t word = words(key_, {round << 32 | other, stream_}).pair(0);
    half ^= word & ((uint64_t{1} << bits) - 1);
    std::swap(half, other);
    std::swap(bits, other_bits);
  }
  return half << low_bits_ | other;
}

}  // namespace lockstep::rng

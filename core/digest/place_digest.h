#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/digest/digest.h"

namespace lockstep {

/// A digest of elements of 4 bytes and their places: a sum, modulo 2^128, of a mix of each element's tensor, index and
/// bits. Whoever adds which elements, and in what order, it is the same. It finds accidents, not forgery.
class PlaceDigest {
 public:
  /// Stands for a tensor in add().
  static uint64_t key(std::string_view tensor);

  /// Elements of a tensor that follow each other in row-major order; `first` is the index of the first. REQUIRES: whole
  /// elements.
  void add(uint64_t key, uint64_t first, std::span<const std::byte> elements);
  /// What others added.
  void add(const Digest& sum);

  Digest result() const { return sum_; }

 private:
  Digest sum_;
};

}  // namespace lockstep

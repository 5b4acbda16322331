#pragma once
#include <cstdint>
#include <vector>

#include "core/box.h"

namespace lockstep::rng {

/// One dimension of a box of a global tensor and where it goes.
struct SubarrayDimension {
  int64_t global_size;    ///< of the whole tensor
  int64_t start, length;  ///< the box: start .. start + length - 1
  int64_t stride;         ///< of the output, in elements
};

/// A box of a global tensor and where its elements go (MPI's subarray), row-major: the index of an element is `base` +
/// its offset in the global tensor, whatever the shape and strides of the piece that is drawn. No dimensions mean one
/// element; a length of 0 means none.
struct Subarray {
  std::vector<SubarrayDimension> dimensions;
  uint64_t base = 0;  ///< index of the global tensor's first element

  /// The whole of a contiguous tensor.
  static Subarray whole(const std::vector<int64_t>& sizes, uint64_t base = 0);

  /// A box written contiguously (row-major) in its own shape.
  static Subarray of(const std::vector<int64_t>& global_sizes, const Box& box, uint64_t base = 0);

  /// Elements of the box.
  int64_t elements() const;

  /// BadInput unless sizes are non-negative, the box lies within them, and every index is below 2^63.
  void check() const;
};

}  // namespace lockstep::rng

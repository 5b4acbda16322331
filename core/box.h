#pragma once
#include <cstdint>
#include <vector>

namespace lockstep {

/// A rectangular part of a tensor: first index and length of every dimension.
struct Box {
  std::vector<int64_t> offset;
  std::vector<int64_t> size;

  /// The box that holds all of a tensor of this shape.
  static Box whole(const std::vector<int64_t>& shape) { return {std::vector<int64_t>(shape.size()), shape}; }

  /// Whether the box lies inside a tensor of this shape, without overflow for any numbers.
  bool inside(const std::vector<int64_t>& shape) const;
  /// Elements in the box. REQUIRES: inside a shape whose element count fits.
  int64_t elements() const;
  /// What both boxes hold; a size of 0 in some dimension when nothing. REQUIRES: the same number of dimensions.
  Box overlap(const Box& other) const;

  friend bool operator==(const Box&, const Box&) = default;
};

}  // namespace lockstep

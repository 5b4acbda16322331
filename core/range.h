#pragma once
#include <algorithm>
#include <cstdint>

namespace lockstep {

/// A half-open range of indices along one dimension.
struct Range {
  int64_t start = 0;
  int64_t length = 0;

  int64_t end() const { return start + length; }
  /// What both hold; of no length where that is nothing.
  Range overlap(const Range& other) const {
    const int64_t first = std::max(start, other.start);
    return {first, std::max<int64_t>(std::min(end(), other.end()) - first, 0)};
  }
  bool operator==(const Range&) const = default;
};

}  // namespace lockstep

#pragma once
#include <cstdint>

namespace lockstep {

/// A half-open range of indices along one dimension.
struct Range {
  int64_t start = 0;
  int64_t length = 0;
  bool operator==(const Range&) const = default;
};

}  // namespace lockstep

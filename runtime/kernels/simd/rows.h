#pragma once
#include <cstdint>

namespace lockstep::kernels::loops {

/// A matrix of contiguous rows.
struct Rows {
  int64_t count, width;
};

}  // namespace lockstep::kernels::loops

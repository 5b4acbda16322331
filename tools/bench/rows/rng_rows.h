#pragma once
#include <vector>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench rng`: bulk draws of 2^20 elements on one thread beside at::rand and at::randn into an existing
/// tensor, nanoseconds per element. Sets LibTorch's thread count to 1.
std::vector<BenchRow> rng_rows();

}  // namespace lockstep::bench

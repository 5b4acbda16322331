#pragma once
#include <functional>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench gpu`: Lockstep's own kernels on the GPU, in microseconds until they are done. Peers: LibTorch's
/// random numbers on the GPU, and what memory gives: a fill with one value for what only writes, a copy (as many bytes
/// read as written) for digests, which only read.
///
/// Of sizes (1MiB, 1GiB), and `ops` for the kernels of our own ops (gpu_op_rows.h), that fit `patterns`; `report` gets
/// rows as they come. Throws BadInput where there is no GPU.
void measure_gpu(const std::string& patterns, const std::function<void(const BenchRow&)>& report);

}  // namespace lockstep::bench

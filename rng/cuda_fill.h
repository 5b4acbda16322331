#pragma once
#include <cstdint>
#include <string>

#include "rng/distribution.h"
#include "rng/philox.h"
#include "rng/subarray.h"

/// Draws on a GPU, with the same bits as rng/fill.h. Without LOCKSTEP_CUDA a stub stands here (no_cuda.cpp).
namespace lockstep::rng {

/// Why nothing can be drawn on a GPU here: built without CUDA, no driver, no device. Empty when it can.
std::string cuda_unavailable_reason();

/// rng::fill into device memory of the current device, asynchronously on `cuda_stream` (a cudaStream_t; null is the
/// default stream). BadInput as rng::fill and when built without CUDA; InternalError when the launch fails.
void cuda_fill(void* device_out, ScalarKind kind, const Distribution& distribution, Key key, uint64_t stream,
               const Subarray& subarray, void* cuda_stream);

/// Draws on the GPU into host memory, for tests: `bytes` from `host_out` on are copied to the device, filled with the
/// box's elements and copied back.
void cuda_fill_host(void* host_out, std::size_t bytes, ScalarKind kind, const Distribution& distribution, Key key,
                    uint64_t stream, const Subarray& subarray);

}  // namespace lockstep::rng

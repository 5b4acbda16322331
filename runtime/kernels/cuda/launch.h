#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "core/error.h"

/// Kernels that take rows or packs by turns: a warp takes a row, its threads the row's packs.
namespace lockstep::cuda {

/// Tests make the grid so small that all have several turns.
#if !defined(LOCKSTEP_MAX_GRID)
#  define LOCKSTEP_MAX_GRID (1 << 16)
#endif
inline constexpr int64_t kWarp = 32, kThreads = 256, kMaxGrid = LOCKSTEP_MAX_GRID;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

__device__ inline int64_t own_thread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t all_threads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }
__device__ inline int64_t own_warp() { return own_thread() / kWarp; }
__device__ inline int64_t all_warps() { return all_threads() / kWarp; }
__device__ inline int own_lane() { return static_cast<int>(threadIdx.x % kWarp); }

/// Of the values that a warp's threads have, in the order of a butterfly: the same bits in all of them.
template <class T>
__device__ T warp_sum(T value) {
  for (int bits = static_cast<int>(kWarp) / 2; bits > 0; bits /= 2)
    value += __shfl_xor_sync(kWholeWarp, value, bits, static_cast<int>(kWarp));
  return value;
}

/// `threads` of them at least, and at most what the grid takes: kernels go on until nothing is left.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), int64_t threads, Arguments... arguments) {
  if (threads == 0) return;
  const int64_t block = std::min(kThreads, (threads + kWarp - 1) / kWarp * kWarp);
  const int64_t grid = std::min(kMaxGrid, (threads + block - 1) / block);
  const cudaLaunchConfig_t config{.gridDim = {static_cast<unsigned>(grid)}, .blockDim = {static_cast<unsigned>(block)}};
  const cudaError_t status = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
  if (status != cudaSuccess)
    fail<InternalError>("{} on a GPU: the launch failed: {}", name, cudaGetErrorString(status));
}

}  // namespace lockstep::cuda

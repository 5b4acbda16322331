#include <cmath>

#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/cuda/launch.h"

namespace lockstep::cuda::canonical {
namespace {

using elementary::Grid;
using kernels::loops::BlockShape;
using kernels::loops::kBlock;

__global__ void nearest_each(Grid grid, int64_t count, const float* x, float* out) {
  for (int64_t i = own_thread(); i < count; i += all_threads()) out[i] = elementary::nearest(grid, x[i]);
}

__global__ void scale_each(Grid grid, bool power_of_two, int64_t count, const float* maxima, float* out) {
  for (int64_t i = own_thread(); i < count; i += all_threads())
    out[i] = elementary::scale_for(grid, maxima[i], power_of_two);
}

__global__ void code_each(Grid grid, int64_t count, const float* x, uint8_t* out) {
  for (int64_t i = own_thread(); i < count; i += all_threads()) out[i] = elementary::float8_code(grid, x[i]);
}

__global__ void number_each(Grid grid, int64_t count, const uint8_t* codes, float* out) {
  for (int64_t i = own_thread(); i < count; i += all_threads()) out[i] = elementary::float8_number(grid, codes[i]);
}

/// A thread takes a block, so that threads side by side read side by side where blocks lie so.
__global__ void nearest_of_blocks(Grid grid, BlockShape shape, int64_t blocks, const float* x, float* out) {
  const auto [outer, length, inner] = shape;
  for (int64_t i = own_thread(); i < outer * blocks * inner; i += all_threads()) {
    const int64_t first = i / inner % blocks * kBlock;
    const int64_t at = (i / inner / blocks * length + first) * inner + i % inner;
    const int64_t rows = length - first < kBlock ? length - first : kBlock;
    const auto scale = elementary::block_scale(grid, rows, inner, x + at);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t each = at + r * inner;
      out[each] = elementary::nearest(grid, x[each] * scale.down) * scale.up;
    }
  }
}

/// Elements that a block of threads transforms at once: whole rows of a power of two, or all of a longer one.
constexpr int64_t kTile = 4096;

/// Threads take pairs that lie `apart` in memory of whole rows.
template <class T>
__device__ void stage(int64_t count, int64_t apart, T* tile) {
  for (int64_t pair = threadIdx.x; pair < count / 2; pair += blockDim.x) {
    const int64_t at = pair / apart * 2 * apart + pair % apart;
    const T a = tile[at], b = tile[at + apart];
    tile[at] = a + b;
    tile[at + apart] = a - b;
  }
  __syncthreads();
}

template <class T>
__global__ void transform_tiles(int64_t all, int64_t width, int64_t tile, T scale, T* elements) {
  for (int64_t start = blockIdx.x * tile; start < all; start += gridDim.x * tile) {
    const int64_t count = all - start < tile ? all - start : tile;
    for (int64_t apart = 1; apart < width; apart *= 2) stage(count, apart, elements + start);
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) elements[start + i] *= scale;
  }
}

}  // namespace

void nearest(NumberFormat format, int64_t count, const float* x, float* out) {
  launch("nearest", nearest_each, count, grid_of(format), count, x, out);
}

void scales(NumberFormat format, bool power_of_two, int64_t count, const float* maxima, float* out) {
  launch("scales", scale_each, count, grid_of(format), power_of_two, count, maxima, out);
}

void float8_codes(NumberFormat format, int64_t count, const float* x, uint8_t* out) {
  launch("float8_codes", code_each, count, grid_of(format), count, x, out);
}

void float8_numbers(NumberFormat format, int64_t count, const uint8_t* codes, float* out) {
  launch("float8_numbers", number_each, count, grid_of(format), count, codes, out);
}

void nearest_in_blocks(NumberFormat format, const BlockShape& shape, const float* x, float* out) {
  const int64_t blocks = (shape.length + kBlock - 1) / kBlock;
  launch("nearest_in_blocks", nearest_of_blocks, shape.outer * blocks * shape.inner, grid_of(format), shape, blocks, x,
         out);
}

template <class T>
void hadamard(int64_t count, int64_t width, T scale, T* rows) {
  const int64_t tile = width > kTile ? width : kTile, tiles = (count * width + tile - 1) / tile;
  launch("hadamard", transform_tiles<T>, tiles * kThreads, count * width, width, tile, scale, rows);
}
template void hadamard(int64_t count, int64_t width, float scale, float* rows);
template void hadamard(int64_t count, int64_t width, double scale, double* rows);

}  // namespace lockstep::cuda::canonical

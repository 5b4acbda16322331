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

/// A thread takes a block: threads side by side read side by side but where the blocks are of the last dimension.
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

/// All stages of whole rows, `count` elements; threads of a block take pairs.
template <class T>
__device__ void transform(int64_t count, int64_t width, T* rows) {
  for (int64_t apart = 1; apart < width; apart *= 2) {
    for (int64_t pair = threadIdx.x; pair < count / 2; pair += blockDim.x) {
      const int64_t at = pair / apart * 2 * apart + pair % apart;
      const T a = rows[at], b = rows[at + apart];
      rows[at] = a + b;
      rows[at + apart] = a - b;
    }
    __syncthreads();
  }
}

/// Elements that a block of threads holds in shared memory: whole rows.
constexpr int64_t kTile = 4096;

template <class T>
__global__ void transform_tiles(int64_t all, int64_t width, T scale, T* elements) {
  __shared__ T tile[kTile];
  for (int64_t start = blockIdx.x * kTile; start < all; start += gridDim.x * kTile) {
    const int64_t count = all - start < kTile ? all - start : kTile;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) tile[i] = elements[start + i];
    __syncthreads();
    transform(count, width, tile);
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x) elements[start + i] = tile[i] * scale;
    __syncthreads();
  }
}

/// Rows that are longer, where they are.
template <class T>
__global__ void transform_rows(int64_t all, int64_t width, T scale, T* elements) {
  for (int64_t start = blockIdx.x * width; start < all; start += gridDim.x * width) {
    transform(width, width, elements + start);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) elements[start + i] *= scale;
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
  const int64_t all = count * width, tiles = (all + kTile - 1) / kTile;
  if (width <= kTile)
    launch("hadamard", transform_tiles<T>, tiles * kThreads, all, width, scale, rows);
  else
    launch("hadamard", transform_rows<T>, count * kThreads, all, width, scale, rows);
}
template void hadamard(int64_t count, int64_t width, float scale, float* rows);
template void hadamard(int64_t count, int64_t width, double scale, double* rows);

}  // namespace lockstep::cuda::canonical

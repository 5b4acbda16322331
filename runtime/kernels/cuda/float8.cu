#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/cuda/elements.h"
#include "runtime/kernels/cuda/launch.h"

namespace lockstep::cuda {
namespace {

using elementary::Grid;

/// A warp takes a row. The arithmetic is that of canonical numerics, and so are the bits.
template <class T, int kWidth>
__global__ void code_rows(Grid grid, ScaledRows rows, const T* x, const float* scales, uint8_t* out) {
  for (int64_t row = own_warp(); row < rows.outer * rows.count; row += all_warps()) {
    const float* scale = scales + row / rows.count * rows.outer_stride + row % rows.count * rows.row_stride;
    for (int64_t p = own_lane(); p < rows.size / kWidth; p += kWarp) {
      const auto from = packs<kWidth>(x + row * rows.size)[p];
      Pack<uint8_t, kWidth> to;
      for (int j = 0; j < kWidth; ++j) {
        const float scaled = number(from.at[j]) * scale[(p * kWidth + j) * rows.element_stride];
        to.at[j] = elementary::float8_code(grid, elementary::nearest(grid, scaled));
      }
      packs<kWidth>(out + row * rows.size)[p] = to;
    }
  }
}

/// A block of threads takes square tiles: each warp reads and writes 32 neighbours.
__global__ void transpose_tiles(int64_t rows, int64_t columns, const uint8_t* in, uint8_t* out) {
  __shared__ uint8_t tile[kWarp][kWarp + 4];
  const int64_t across = (columns + kWarp - 1) / kWarp, tiles = (rows + kWarp - 1) / kWarp * across;
  const int64_t lane = own_lane(), first = threadIdx.x / kWarp, step = kThreads / kWarp;
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t row = t / across * kWarp, column = t % across * kWarp;
    for (int64_t i = first; i < kWarp; i += step)
      if (row + i < rows && column + lane < columns) tile[i][lane] = in[(row + i) * columns + column + lane];
    __syncthreads();
    for (int64_t i = first; i < kWarp; i += step)
      if (column + i < columns && row + lane < rows) out[(column + i) * rows + row + lane] = tile[lane][i];
    __syncthreads();
  }
}

}  // namespace

void float8_codes(Element element, elementary::NumberFormat format, const ScaledRows& rows, const void* x,
                  const float* scales, uint8_t* out) {
  on_elements(
      element, rows.size,
      [&]<class T, int kWidth>() {
        launch("float8_codes", code_rows<T, kWidth>, rows.outer * rows.count * kWarp, grid_of(format), rows,
               static_cast<const T*>(x), scales, out);
      },
      x, out);
}

void transpose_bytes(int64_t rows, int64_t columns, const uint8_t* in, uint8_t* out) {
  const int64_t tiles = (rows + kWarp - 1) / kWarp * ((columns + kWarp - 1) / kWarp);
  launch("transpose_bytes", transpose_tiles, tiles * kThreads, rows, columns, in, out);
}

}  // namespace lockstep::cuda

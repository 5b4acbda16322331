#include "runtime/kernels/rows/low_precision_loops.h"

#include <algorithm>

#include "runtime/kernels/simd/best_instruction_set.h"

namespace lockstep::kernels::loops {
namespace {

using elementary::Grid;

struct Nearest {
  LOCKSTEP_PORTABLE static void run(Grid grid, int64_t count, const float* x, float* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = elementary::nearest(grid, x[i]);
  }
};

struct Codes {
  LOCKSTEP_PORTABLE static void run(Grid grid, int64_t count, const float* x, uint8_t* __restrict out) {
    for (int64_t i = 0; i < count; ++i) out[i] = elementary::float8_code(grid, x[i]);
  }
};

struct Numbers {
  LOCKSTEP_PORTABLE static void run(Grid grid, int64_t count, const uint8_t* codes, float* __restrict out) {
    for (int64_t i = 0; i < count; ++i) out[i] = elementary::float8_number(grid, codes[i]);
  }
};

constexpr int64_t kColumns = 64;  ///< blocks that lie side by side and are worked on together

/// `columns` blocks side by side in memory, rows `stride` apart. Bits of magnitudes are ordered like them, NaN last.
struct Blocks {
  LOCKSTEP_PORTABLE static void run(Grid grid, int64_t rows, int64_t columns, int64_t stride, const float* x,
                                    float* __restrict out) {
    uint32_t maxima[kColumns] = {};
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        maxima[c] = std::max(maxima[c], portable::bits<uint32_t>(portable::absolute(x[r * stride + c])));
    float down[kColumns], up[kColumns];
    for (int64_t c = 0; c < columns; ++c) {
      const auto scale = elementary::block_scale(grid, maxima[c]);
      down[c] = scale.down, up[c] = scale.up;
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        out[r * stride + c] = elementary::nearest(grid, x[r * stride + c] * down[c]) * up[c];
  }
};

/// One block in consecutive memory.
struct Block {
  LOCKSTEP_PORTABLE static void run(Grid grid, int64_t count, const float* x, float* __restrict out) {
    const auto scale = elementary::block_scale(grid, count, 1, x);
    for (int64_t i = 0; i < count; ++i) out[i] = elementary::nearest(grid, x[i] * scale.down) * scale.up;
  }
};

struct AllBlocks {
  LOCKSTEP_PORTABLE static void run(Grid grid, BlockShape shape, const float* x, float* __restrict out) {
    const auto [outer, length, inner] = shape;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t first = 0; first < length; first += kBlock) {
        const int64_t at = (o * length + first) * inner, rows = std::min(kBlock, length - first);
        if (inner == 1) {
          Block::run(grid, rows, x + at, out + at);
          continue;
        }
        for (int64_t c = 0; c < inner; c += kColumns)
          Blocks::run(grid, rows, std::min(kColumns, inner - c), inner, x + at + c, out + at + c);
      }
  }
};

}  // namespace

void nearest(NumberFormat format, int64_t count, const float* x, float* out, InstructionSet set) {
  on_instruction_set<Nearest>(set, grid_of(format), count, x, out);
}

void scales(NumberFormat format, bool power_of_two, int64_t count, const float* maxima, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = elementary::scale_for(grid_of(format), maxima[i], power_of_two);
}

void float8_codes(NumberFormat format, int64_t count, const float* x, uint8_t* out, InstructionSet set) {
  on_instruction_set<Codes>(set, grid_of(format), count, x, out);
}

void float8_numbers(NumberFormat format, int64_t count, const uint8_t* codes, float* out, InstructionSet set) {
  on_instruction_set<Numbers>(set, grid_of(format), count, codes, out);
}

void nearest_in_blocks(NumberFormat format, const BlockShape& shape, const float* x, float* out, InstructionSet set) {
  on_instruction_set<AllBlocks>(set, grid_of(format), shape, x, out);
}

}  // namespace lockstep::kernels::loops

#pragma once
#include <cstdint>

#include "core/elementary/instruction_set.h"
#include "core/elementary/low_precision.h"

/// Numbers of few bits on raw memory: core/elementary/low_precision.h, element by element. The same bits on every
/// instruction set and at every place.
namespace lockstep::kernels::loops {

using elementary::NumberFormat;

/// out[i] = nearest(x[i]); may be in place.
void nearest(NumberFormat format, int64_t count, const float* x, float* out,
             InstructionSet set = best_instruction_set());

/// out[i] = scale_for(maxima[i]).
void scales(NumberFormat format, bool power_of_two, int64_t count, const float* maxima, float* out);

/// Codes of numbers of the grid, and numbers of codes. REQUIRES: E4M3 or E5M2.
void float8_codes(NumberFormat format, int64_t count, const float* x, uint8_t* out,
                  InstructionSet set = best_instruction_set());
void float8_numbers(NumberFormat format, int64_t count, const uint8_t* codes, float* out,
                    InstructionSet set = best_instruction_set());

/// Elements along a dimension that share a scale.
inline constexpr int64_t kBlock = 32;

/// x [outer, length, inner]: of each block of 32 elements along `length` (the last one may be shorter) what it holds
/// under the scale that it shares. A block with an infinity or a NaN is NaN throughout.
struct BlockShape {
  int64_t outer, length, inner;
};
void nearest_in_blocks(NumberFormat format, const BlockShape& shape, const float* x, float* out,
                       InstructionSet set = best_instruction_set());

}  // namespace lockstep::kernels::loops

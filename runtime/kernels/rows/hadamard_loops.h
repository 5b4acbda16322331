#pragma once
#include <cstdint>

#include "core/elementary/instruction_set.h"

/// The fast Walsh-Hadamard transform (Fino and Algazi, "Unified matrix treatment of the fast Walsh-Hadamard transform",
/// 1976) on raw memory.
namespace lockstep::kernels::loops {

/// Each of `count` rows of `width` elements, float or double: stages h = 1, 2, 4, ..., width / 2, each of which makes
/// (a + b, a - b) of the pairs (a, b) that lie h apart; then every element times `scale`. Every sum and the product are
/// rounded, in that order, whatever the instruction set. In place. REQUIRES: width is a power of two.
template <class T>
void hadamard(int64_t count, int64_t width, T scale, T* rows, InstructionSet set = best_instruction_set());

}  // namespace lockstep::kernels::loops

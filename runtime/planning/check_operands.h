#pragma once
#include <span>
#include <string>

#include "runtime/planning/rule.h"

namespace lockstep {

/// Checks the operands of a call whose sizes LibTorch does not check (an op of our own, or without a meta kernel)
/// against the row's dims: every operand has the dimensions that its part of the text says, and one letter has one size
/// everywhere. Dimensions under "..." are equal for ops of our own and may be broadcast for LibTorch's. A text that is
/// only a description checks nothing. Throws BadInput that names op, operand, dimension and both sizes.
void check_operands(const Rule& rule, const Call& call);

/// Checks that every operand has as many dimensions as the row's dims say: some of LibTorch's meta kernels do not look.
/// REQUIRES: dims that are no description. Throws BadInput that names op and operand.
void check_dim_counts(const Rule& rule, const Call& call);

/// Checks that every operand of a pointwise op can be broadcast to the one that it writes (LibTorch's meta kernels do
/// not always look). Throws BadInput that names op, operand and both sizes.
void check_fits_written(const Rule& rule, const Call& call, size_t written);

/// "f32[8,4] [tp=S(0)], plain": of operands, null for plain tensors.
std::string texts_of(std::span<const TensorSpec* const> specs);

/// Results of what computes from each row alone are packed as its operands are: rows of the same cells. Throws BadInput
/// where an op takes no packed rows, or not these side by side. `given`: specs per slot, null for plain tensors.
void keep_packing(const Rule& rule, Call& call, std::span<const TensorSpec* const> given);

}  // namespace lockstep

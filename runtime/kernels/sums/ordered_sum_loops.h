#pragma once
#include <cstdint>
#include <span>

#include "core/elementary/instruction_set.h"
#include "runtime/kernels/sums/sum_tree.h"

/// Sums along the one tree on raw memory, for float and double: the same bits on every instruction set.
namespace lockstep::kernels::loops {

/// The elements [first, first + count) of the sum that `tree` describes; x is [outer, count, inner], contiguous.
struct OrderedSum {
  SumTree tree;
  int64_t first;
  int64_t outer, count, inner;
};

/// out [nodes, outer, inner]: the nodes of cover(), left to right.
template <class T>
void ordered_sum(const OrderedSum& sum, const T* x, T* out, InstructionSet set = best_instruction_set());

/// Of exp(x - shift[outer]); inner is 1.
template <class T>
void ordered_exponential_sum(const OrderedSum& sum, const T* x, const T* shift, T* out,
                             InstructionSet set = best_instruction_set());

/// Of g * (x * r[outer, count]), each rounded product fused into the chain: dw of RMSNorm for every sample.
template <class T>
void ordered_norm_gradient(const OrderedSum& sum, const T* g, const T* x, const T* r, T* out,
                           InstructionSet set = best_instruction_set());

/// The gradient of a table whose rows were looked up: for every row of [first_row, first_row + rows) the sum of the
/// gradients [samples, length, width] at its positions, samples outside, positions inside; out [nodes, rows, width].
struct TableGradient {
  SumTree samples;
  int64_t first_sample, sample_count, length, width;
  int64_t count;  ///< positions; the last sample may be short
  int64_t first_row, rows;
};
/// Tokens outside of the rows are skipped.
template <class T>
void table_gradient(const TableGradient& shape, const int64_t* tokens, const T* gradient, T* out,
                    InstructionSet set = best_instruction_set());

}  // namespace lockstep::kernels::loops

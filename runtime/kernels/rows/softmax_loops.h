#pragma once
#include "runtime/kernels/rows/row_loops.h"

/// Softmax of whole rows on raw memory, for float and double: the same bits on every instruction set. The row's sum is
/// the tree's over its elements (sum_tree.h); its maximum is exact, and +0 where it is zero.
namespace lockstep::kernels::loops {

/// e / sum(e) with e = exp(x - max x).
template <class T>
void softmax(Rows rows, const T* x, T* out, InstructionSet set = best_instruction_set());

/// (x - max x) - ln sum(exp(x - max x)).
template <class T>
void log_softmax(Rows rows, const T* x, T* out, InstructionSet set = best_instruction_set());

/// g y - y sum(g y), where softmax gave y.
template <class T>
void softmax_backward(Rows rows, const T* g, const T* y, T* out, InstructionSet set = best_instruction_set());

/// g - exp(y) sum(g), where log_softmax gave y.
template <class T>
void log_softmax_backward(Rows rows, const T* g, const T* y, T* out, InstructionSet set = best_instruction_set());

}  // namespace lockstep::kernels::loops

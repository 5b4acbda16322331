#pragma once
#include <cstdint>

#include "core/elementary/instruction_set.h"
#include "runtime/kernels/rows/adamw_step.h"
#include "runtime/kernels/simd/rows.h"

/// The inner loops of the CPU kernels on raw memory, for float and double, vectorised for the machine's instruction
/// set with the same bits on all. What each computes is documented in runtime/own_ops/mesh_ops.h.
namespace lockstep::kernels::loops {

/// Parameter, gradient, mean, square.
template <class T>
void adamw(int64_t count, T* p, const T* g, T* m, T* v, const AdamwStep<T>& step,
           InstructionSet set = best_instruction_set());

/// In double whatever T is.
template <class T>
double sum_of_squares(int64_t count, const T* x);

template <class T>
void rms_norm(Rows rows, const T* x, const T* weight, T* y, T* reciprocal, T epsilon,
              InstructionSet set = best_instruction_set());
/// Adds to dw; null: it is not wanted.
template <class T>
void rms_norm_backward(Rows rows, const T* g, const T* x, const T* reciprocal, const T* weight, T* dx, T* dw,
                       InstructionSet set = best_instruction_set());

template <class T>
void exponential_sum(Rows rows, const T* logits, const T* shift, T* sum);
template <class T>
void cross_entropy_backward(Rows rows, const T* gradient, const T* logits, const T* log_sum, const int64_t* target,
                            T* out, InstructionSet set = best_instruction_set());

/// Rows of a gate and of what it gates in turns: out = silu(gate) * up.
template <class T>
void swiglu(Rows rows, const T* both, T* out, InstructionSet set = best_instruction_set());
template <class T>
void swiglu_backward(Rows rows, const T* gradient, const T* both, T* out, InstructionSet set = best_instruction_set());

/// x [batch, heads, length, size] with any strides but 1 in the last dimension -> y with memory [batch, length, heads,
/// size]; tables [length, size / 2]. `sign` -1 turns back.
struct HeadShape {
  int64_t batch, heads, length, size;
  int64_t batch_stride, head_stride, length_stride;
};
template <class T>
void rotate_pairs(const HeadShape& shape, const T* x, const T* cosines, const T* sines, T sign, T* y,
                  InstructionSet set = best_instruction_set());

}  // namespace lockstep::kernels::loops

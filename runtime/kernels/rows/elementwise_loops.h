#pragma once
#include <cstdint>

#include "core/elementary/instruction_set.h"

/// Elementwise functions on raw memory, for float and double: core/elementary/elementary.h and single IEEE operations,
/// so that an element has the same bits on every instruction set and at every place. (LibTorch calls MKL's for exp,
/// log, erf, sqrt and the like, whose last bits depend on the processor.)
namespace lockstep::kernels::loops {

enum class Function { kExp, kLog, kSqrt, kErf, kTanh, kSin, kCos, kSigmoid, kSilu, kGelu };

/// With s = sigmoid(x) = 1 / (e^-x + 1): silu = x s. gelu = max(x, 0) - |x| P(X > |x|), which is x cdf(x).
template <class T>
void apply(Function function, int64_t count, const T* x, T* out, InstructionSet set = best_instruction_set());

/// silu: (g s) (x (1 - s) + 1). gelu: g (cdf + x pdf), pdf = e^(-x x / 2) / sqrt(2 pi).
enum class Gradient { kSilu, kGelu };
template <class T>
void apply(Gradient gradient, int64_t count, const T* g, const T* x, T* out,
           InstructionSet set = best_instruction_set());

}  // namespace lockstep::kernels::loops

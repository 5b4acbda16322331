#pragma once
#include <cstdint>

#include "core/elementary/instruction_set.h"

/// Elementwise functions on raw memory, for float and double: core/elementary/elementary.h and single IEEE operations,
/// so that an element has the same bits on every instruction set and at every place. (LibTorch calls MKL's for exp,
/// log, erf, sqrt and the like, whose last bits depend on the processor.)
namespace lockstep::kernels::loops {

enum class Function { kExp, kLog, kSqrt, kErf, kTanh, kSin, kCos, kSigmoid, kSilu, kGelu, kGeluByTanh };

/// With s = sigmoid(x) = 1 / (e^-x + 1): silu = x s. gelu = max(x, 0) - |x| P(X > |x|), which is x cdf(x).
/// gelu by tanh: x / 2 (1 + t), t = tanh(sqrt(2 / pi) (x + 0.044715 x^3)) (Hendrycks and Gimpel, 2016), with x cut at
/// +-10 inside t, where t is 1.
template <class T>
void apply(Function function, int64_t count, const T* x, T* out, InstructionSet set = best_instruction_set());

/// silu: (g s) (x (1 - s) + 1). gelu: g (cdf + x pdf), pdf = e^(-x x / 2) / sqrt(2 pi).
/// gelu by tanh: g ((1 + t) / 2 + x / 2 (1 - t t) t'), t' = sqrt(2 / pi) (1 + 3 * 0.044715 x x).
enum class Gradient { kSilu, kGelu, kGeluByTanh };
template <class T>
void apply(Gradient gradient, int64_t count, const T* g, const T* x, T* out,
           InstructionSet set = best_instruction_set());

}  // namespace lockstep::kernels::loops

#pragma once
#include <ATen/core/Tensor.h>

#include "runtime/kernels/rows/elementwise_loops.h"

namespace lockstep::kernels {

/// The function of each element of a CPU tensor, in its dtype; 16-bit ones are widened to fp32 and rounded once.
/// LibTorch's thread count says how many threads share the work.
at::Tensor apply(loops::Function function, const at::Tensor& x);

/// g, x of one dtype and size.
at::Tensor apply(loops::Gradient gradient, const at::Tensor& g, const at::Tensor& x);

}  // namespace lockstep::kernels

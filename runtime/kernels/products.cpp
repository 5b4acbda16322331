// Contractions on plain CPU tensors that LibTorch has no single op for.
#include <ATen/Functions.h>

#include "runtime/kernels/cpu_kernels.h"

namespace lockstep::kernels {

Tensor weight_gradient(const Tensor& gradient, const Tensor& input) {
  return at::mm(gradient.reshape({-1, gradient.size(-1)}).t(), input.reshape({-1, input.size(-1)}));
}

}  // namespace lockstep::kernels

// Contractions on plain CPU tensors that LibTorch has no single op for.
#include <ATen/Functions.h>

#include "runtime/kernels/tensors/cpu_kernels.h"

namespace lockstep::kernels {

Tensor weight_gradient(const Tensor& gradient, const Tensor& input) {
  const int64_t rows = c10::multiply_integers(gradient.sizes().begin(), gradient.sizes().end() - 1);
  return at::mm(gradient.reshape({rows, gradient.size(-1)}).t(), input.reshape({rows, input.size(-1)}));
}

}  // namespace lockstep::kernels

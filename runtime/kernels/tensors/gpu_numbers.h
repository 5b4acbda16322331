#pragma once
#include <ATen/core/Tensor.h>

#include "core/error.h"

namespace lockstep::kernels {

/// Whether a GPU has these numbers. Throws BadInput where it does and its canonical kernels do not take them:
/// float32 alone, to which 16 bits are widened.
inline bool is_on_gpu(const at::Tensor& wide, const char* op) {
  if (!wide.is_cuda()) return false;
  if (wide.scalar_type() != c10::kFloat)
    fail<BadInput>("{} of {} on a GPU: canonical numerics computes in float32 there, of float32 and bfloat16", op,
                   c10::toString(wide.scalar_type()));
  return true;
}

inline const float* floats(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }
inline float* to_floats(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

}  // namespace lockstep::kernels

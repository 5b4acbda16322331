#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep::kernels {

/// 16-bit tensors are computed with in fp32. Contiguous.
inline at::Tensor widened(const at::Tensor& tensor) {
  const auto dtype = tensor.scalar_type();
  return (dtype == c10::kBFloat16 || dtype == c10::kHalf ? tensor.to(c10::kFloat) : tensor).contiguous();
}

}  // namespace lockstep::kernels

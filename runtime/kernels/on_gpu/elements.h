#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "runtime/kernels/cuda/cuda_kernels.h"

namespace lockstep::on_gpu {

/// Which elements all tensors have, if the kernels of this build take them.
template <class... Tensors>
std::optional<cuda::Element> element_of(const at::Tensor& first, const Tensors&... others) {
  const auto dtype = first.scalar_type();
  if (!cuda::has_kernels() || !((others.scalar_type() == dtype) && ...)) return std::nullopt;
  if (dtype == c10::kFloat) return cuda::Element::kFloat32;
  return dtype == c10::kBFloat16 ? std::optional(cuda::Element::kBFloat16) : std::nullopt;
}

/// A tensor [..., size] as rows.
inline cuda::Rows rows_of(const at::Tensor& tensor) {
  const int64_t size = tensor.size(-1);
  return {size > 0 ? tensor.numel() / size : 0, size};
}

}  // namespace lockstep::on_gpu

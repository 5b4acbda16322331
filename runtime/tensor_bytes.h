#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

namespace lockstep {

/// The bytes of a contiguous CPU tensor, borrowed.
inline std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace lockstep

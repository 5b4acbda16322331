#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

namespace lockstep {

/// The bytes of a contiguous tensor, borrowed; in the memory of its device.
inline std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

}  // namespace lockstep

#pragma once
#include <ATen/core/Tensor.h>

#include "runtime/tensor/domain.h"

namespace lockstep {

/// In the dtype that sums are kept in: what an op makes on its way is not rounded to 16 bits.
inline at::Tensor widened(const at::Tensor& tensor) {
  return tensor.to(accumulation(Domain::kDeclared, tensor.scalar_type()));
}

}  // namespace lockstep

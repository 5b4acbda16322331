#pragma once
#include <ATen/core/Tensor.h>

/// Functions of elements whose decompositions write in place to what may be an unfinished sum; arguments and results
/// are LibTorch's, for its ops of these names.
namespace lockstep::composed {

at::Tensor mvlgamma(const at::Tensor& self, int64_t p);

}  // namespace lockstep::composed

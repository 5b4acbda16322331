#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep::models {

/// x in this dtype, differentiable. As torch's to(), but an unfinished sum that becomes narrower stays one, forward and
/// backward: what a rank has of it is not rounded before all is added (declared_as()).
at::Tensor cast(const at::Tensor& x, c10::ScalarType dtype);

}  // namespace lockstep::models

#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep {

/// The whole tensor as a plain one in its stored dtype (a copy); of packed rows, 0 where there is none. Communicates,
/// but is not counted as traffic. Throws BadInput where no rank of the tensor's mesh lives.
at::Tensor gather(const at::Tensor& tensor);

}  // namespace lockstep

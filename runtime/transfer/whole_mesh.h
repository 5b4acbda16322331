#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep {

/// Values that all ranks of a submesh have, on all ranks of the whole mesh, bit for bit; those of the whole mesh as
/// they are. One small collective for each axis that a submesh fixes; all ranks of the whole mesh call it. No autograd.
/// REQUIRES: replicated tensors of one whole mesh.
std::vector<at::Tensor> on_whole_mesh(const std::vector<at::Tensor>& tensors);

/// gather() for all ranks of the whole mesh, which all call it: also of what lives on a part of it.
at::Tensor gather_everywhere(const at::Tensor& tensor);

}  // namespace lockstep

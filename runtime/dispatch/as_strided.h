#pragma once
#include <torch/library.h>

namespace lockstep {

/// as_strided on the mesh device, below autograd and in its place. Strides of a storage have no meaning on shards, so
/// it gives what other views give: the tensor itself, and windows that slide over the last dimension (the transforms of
/// short times ask for them). All else is BadInput.
void register_as_strided(torch::Library& backend, torch::Library& autograd);

}  // namespace lockstep

#pragma once
#include <torch/library.h>

#include <set>
#include <string>

namespace lockstep {

/// Kernels of the mesh device that are put together of ops with rows: batch norm, whose statistics are those of the
/// whole batch on any mesh, derivatives of norms, an activation that draws, the fused optimizers, parameter by
/// parameter, and in-place views.
void register_composed_kernels(torch::Library& library);

/// The ops that have one.
const std::set<std::string>& composed_kernels();

}  // namespace lockstep

#pragma once
#include <torch/library.h>

#include <set>
#include <string>

namespace lockstep {

/// Kernels of the mesh device that are no rule: copies between devices, reading a value, and the backward of ops that
/// are taken whole.
void register_native_kernels(torch::Library& library);

/// The ops that have one.
const std::set<std::string>& native_kernels();
/// The ops whose kernel only says why a mesh has no such op.
const std::set<std::string>& refused_by_hand();

}  // namespace lockstep

#pragma once
#include <torch/library.h>

#include <set>
#include <string>

namespace lockstep {

/// Kernels of the mesh device that are no rule: copies between devices, reading a value, and the backward of ops that
/// are taken whole. Returns the names registered.
std::set<std::string> register_native_kernels(torch::Library& library);

}  // namespace lockstep

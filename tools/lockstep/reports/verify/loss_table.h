#pragma once
#include <span>

#include "tools/lockstep/reports/verify/mesh_verdict.h"

namespace lockstep::tool {

/// Losses of steps, a row for one device and for each mesh; the last column counts the bits of all that was compared,
/// loss, gradients and parameters of every step, that are not one device's. Nothing for no steps.
std::string loss_table(std::span<const MeshVerdict> verdicts, std::span<const int64_t> steps);

}  // namespace lockstep::tool

#pragma once

namespace lockstep::kernels {

/// Of a sum of what lies side by side (lanes.h).
constexpr int kSumLanes = 16;

}  // namespace lockstep::kernels

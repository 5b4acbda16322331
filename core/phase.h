#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep {

/// What part of a step an op belongs to. The numbers are part of the format of recordings.
enum class Phase : uint8_t { kInit, kForward, kRecompute, kBackward, kReduce, kClip, kOptimizer, kSave };
inline constexpr const char* kPhaseNames[] = {"init",   "forward", "recompute", "backward",
                                              "reduce", "clip",    "optimizer", "save"};
inline const char* to_text(Phase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }

}  // namespace lockstep

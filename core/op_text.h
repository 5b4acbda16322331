#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/phase.h"

namespace lockstep {

/// What names an op within its step, on every mesh: "microbatch 0, backward, layers.3.attention, mm #2". Without
/// the "#2" if the occurrence is negative: not counted.
std::string op_text(int64_t microbatch, Phase phase, std::string_view module, std::string_view op, int64_t occurrence);

}  // namespace lockstep

#include "core/op_text.h"

#include <fmt/format.h>

#include <iterator>

namespace lockstep {
namespace {

/// Of a number that a file holds, which may be no phase at all.
const char* phase_text(Phase phase) {
  return static_cast<size_t>(phase) < std::size(kPhaseNames) ? to_text(phase) : "unknown phase";
}

}  // namespace

std::string op_text(int64_t microbatch, Phase phase, std::string_view module, std::string_view op, int64_t occurrence) {
  const auto count = occurrence < 0 ? "" : fmt::format(" #{}", occurrence);
  return fmt::format("microbatch {}, {}, {}{}{}{}", microbatch, phase_text(phase), module, module.empty() ? "" : ", ",
                     op, count);
}

}  // namespace lockstep

#include "core/op_text.h"

#include <fmt/format.h>

namespace lockstep {

std::string op_text(int64_t microbatch, Phase phase, std::string_view module, std::string_view op, int64_t occurrence) {
  const auto count = occurrence < 0 ? "" : fmt::format(" #{}", occurrence);
  return fmt::format("microbatch {}, {}, {}{}{}{}", microbatch, to_text(phase), module, module.empty() ? "" : ", ", op,
                     count);
}

}  // namespace lockstep

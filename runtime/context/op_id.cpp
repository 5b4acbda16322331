#include "runtime/context/op_id.h"

#include <fmt/format.h>

#include "core/op_text.h"

namespace lockstep {

std::string OpId::text() const {
  return fmt::format("step {}, {}", step, op_text(microbatch, phase, module, op, occurrence));
}

}  // namespace lockstep

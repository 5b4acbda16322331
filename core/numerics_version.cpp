#include "core/numerics_version.h"

#include <fmt/format.h>

namespace lockstep {

std::string numerics_version_text(std::optional<int64_t> version) {
  return version ? fmt::format("numerics version {}", *version) : "a numerics version that is not known";
}

}  // namespace lockstep

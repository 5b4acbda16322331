#include "tools/lockstep/reports/page/differences.h"

#include <fmt/format.h>

#include <cmath>

namespace lockstep::tool {

std::string relative_text(double relative) {
  if (!std::isfinite(relative)) return "not finite";
  return relative > 0 ? fmt::format("{:.1e}", relative) : "0";
}

bool is_worse(double difference, double than) { return std::isnan(difference) || difference > than; }

}  // namespace lockstep::tool

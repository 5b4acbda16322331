#include "runtime/planning/plan.h"

#include <fmt/format.h>

namespace lockstep {

std::string layouts_of(const Plan& plan) {
  std::string text;
  for (const auto* spec : plan.wanted)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", spec ? spec->layout.text() : "plain");
  text += " -> ";
  for (size_t r = 0; r < plan.results.size(); ++r) text += (r ? ", " : "") + plan.results[r]->layout.text();
  return text;
}

}  // namespace lockstep

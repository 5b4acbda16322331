#include "runtime/planning/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace lockstep {
namespace {

size_t find(const c10::FunctionSchema& schema, std::string_view name) {
  const auto& all = schema.arguments();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& argument) { return argument.name() == name; });
  return static_cast<size_t>(found - all.begin());
}

}  // namespace

size_t argument_number(const c10::FunctionSchema& schema, std::string_view name) {
  const size_t number = find(schema, name);
  LOCKSTEP_CHECK(number < schema.arguments().size(), "{} has no argument {}", schema.name(), name);
  return number;
}

bool has_argument(const c10::FunctionSchema& schema, std::string_view name) {
  return find(schema, name) < schema.arguments().size();
}

std::string layouts_of(const Plan& plan) {
  std::string text;
  for (const auto* spec : plan.wanted)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", spec ? spec->layout.text() : "plain");
  text += " -> ";
  for (size_t r = 0; r < plan.results.size(); ++r) text += (r ? ", " : "") + plan.results[r]->layout.text();
  return text;
}

}  // namespace lockstep

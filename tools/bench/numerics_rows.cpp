#include "tools/bench/numerics_rows.h"

#include <fmt/ranges.h>

#include <iterator>

#include "core/error.h"

namespace lockstep::bench {
namespace {

std::vector<NumericsCase> all_cases() {
  auto all = product_cases(1);
  for (auto family : {row_op_cases(), step_cases(), product_cases(2)})
    std::move(family.begin(), family.end(), std::back_inserter(all));
  return all;
}

}  // namespace

std::vector<NumericsCase> numerics_cases(const std::string& patterns) {
  auto cases = all_cases();
  std::vector<std::string> names;
  for (const auto& one : cases) names.push_back(one.name);
  std::erase_if(cases, [&](const NumericsCase& one) { return !fits(one.name, patterns); });
  if (cases.empty()) fail<BadInput>("no row of numerics is called {}. They are {}.", patterns, fmt::join(names, ", "));
  return cases;
}

}  // namespace lockstep::bench

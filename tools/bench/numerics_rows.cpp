#include "tools/bench/numerics_rows.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <iterator>
#include <sstream>

#include "core/error.h"

namespace lockstep::bench {
namespace {

std::vector<NumericsCase> all_cases() {
  auto all = product_cases(1);
  for (auto family : {row_op_cases(), step_cases(), product_cases(2)})
    std::move(family.begin(), family.end(), std::back_inserter(all));
  return all;
}

bool fits(const std::string& name, const std::string& patterns) {
  std::istringstream list(patterns);
  for (std::string pattern; std::getline(list, pattern, ',');)
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  return false;
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

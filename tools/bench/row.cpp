#include "tools/bench/row.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"

namespace lockstep::bench {

bool fits(const std::string& name, const std::string& patterns) {
  std::istringstream list(patterns);
  for (std::string pattern; std::getline(list, pattern, ',');)
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  return false;
}

void require_fit(const char* benchmark, const std::vector<std::string>& names, const std::string& patterns) {
  if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return fits(name, patterns); }))
    fail<BadInput>("no row of {} is called {}. They are {}.", benchmark, patterns, fmt::join(names, ", "));
}

}  // namespace lockstep::bench

#include "tools/bench/row.h"

#include <fnmatch.h>

#include <sstream>

namespace lockstep::bench {

bool fits(const std::string& name, const std::string& patterns) {
  std::istringstream list(patterns);
  for (std::string pattern; std::getline(list, pattern, ',');)
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  return false;
}

}  // namespace lockstep::bench

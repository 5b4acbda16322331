#pragma once
#include <functional>
#include <string>
#include <vector>

namespace lockstep::fuzz {

/// A property to be tried on random cases, run inside RapidCheck: it draws, and fails with one line.
struct Check {
  std::string name;  ///< "mm/layouts"
  std::function<void()> property;
  /// Whether every case may be refused or left out, so that nothing is ever compared.
  bool may_compare_nothing = false;
};

using Checks = std::vector<Check>;

}  // namespace lockstep::fuzz

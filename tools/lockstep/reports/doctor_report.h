#pragma once
#include <string>
#include <utility>
#include <vector>

/// What `lockstep doctor` looks at, apart from how it is shown.
namespace lockstep::tool {

enum class Health { kFine, kNote, kBroken };

struct Finding {
  std::string name;
  std::string text;
  Health health = Health::kFine;
  std::vector<std::pair<std::string, double>> numbers = {};  ///< for programs, by name
};

/// One finding per line of the report, in a fixed order.
std::vector<Finding> examine_machine();

}  // namespace lockstep::tool

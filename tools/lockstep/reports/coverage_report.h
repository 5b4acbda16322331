#pragma once
#include <nlohmann/json.hpp>

#include "consistency/coverage.h"

namespace lockstep::tool {

/// What a suite came to, and what it did not: a few lines for people. Names, or where they are many how many of which
/// family; nothing is known where no mesh was watched.
std::string coverage_text(const Coverage& coverage);

/// {"rules": {"reached", "of", "missing"}, "candidates", "moves", "collectives"}; of candidates what is missing by row.
nlohmann::ordered_json coverage_json(const Coverage& coverage);

}  // namespace lockstep::tool

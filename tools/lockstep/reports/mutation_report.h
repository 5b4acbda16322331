#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trainer/mutation/score.h"

namespace lockstep::tool {

/// The table of classes and what each approach sees, as a terminal shows it.
std::string mutation_table(const trainer::MutationScore& score);

/// The same as a page of docs/, with survivors and misnamed ones in full. `command` made it.
std::string mutation_markdown(const trainer::MutationScore& score, const std::string& command);

/// {"mutants", "equivalent", "caught", "caught_by", "blame_exact", "false_alarms", "survivors", "others", "classes"}.
nlohmann::ordered_json mutation_json(const trainer::MutationScore& score);

}  // namespace lockstep::tool

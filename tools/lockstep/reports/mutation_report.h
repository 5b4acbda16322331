#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "trainer/mutation/trials/score.h"

namespace lockstep::tool {

/// The table of classes and what each approach sees, as a terminal shows it.
std::string mutation_table(const trainer::MutationScore& score);

/// The same as a page of docs/, with survivors and misnamed ones in full. `command` made it. `before`: the page as it
/// was; from kSourcesMark on it stays.
std::string mutation_markdown(const trainer::MutationScore& score, const std::string& command,
                              const std::string& before);

/// Where the part of the page begins that tools/mutate_sources writes.
inline constexpr std::string_view kSourcesMark = "<!-- from here on: tools/mutate_sources --report --markdown -->";

/// {"mutants", "equivalent", "caught", "caught_by", "blame_exact", "false_alarms", "survivors", "others", "classes",
/// "trials"}.
nlohmann::ordered_json mutation_json(const trainer::MutationScore& score);

}  // namespace lockstep::tool

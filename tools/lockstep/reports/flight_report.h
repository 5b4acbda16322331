#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/lockstep/launch/rank_process.h"

/// What the ranks of a launch did last, for one that failed.
namespace lockstep::tool {

/// One row per rank, in 100 columns: its last collective, what became of it, whom it waited for, and for how long.
/// Empty if no rank has begun any.
std::string flight_table(const std::vector<RankStory>& stories);

/// One sentence that says which rank is to blame, for what; empty if that cannot be told.
std::string blame(const std::vector<RankStory>& stories);

/// [{"rank", "exit", "error", "collective"}, ...]; exit is -n after signal n.
nlohmann::ordered_json to_json(const std::vector<RankStory>& stories);

}  // namespace lockstep::tool

#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// Writes a command's result to the file that --json names, in one piece; nothing when it names none. Keys keep the
/// order in which they were set. FileError when it cannot be written.
void write_json(const Output& output, const nlohmann::ordered_json& result);

/// The same before the command is done, for what has been found so far: where that cannot be written it says so on
/// stderr, and goes on. Nothing where a file cannot be replaced.
void update_json(const Output& output, const nlohmann::ordered_json& so_far);

/// Whether a file can be written again: what reads a pipe takes all that comes for one result.
bool can_be_replaced(const std::string& path);

}  // namespace lockstep::tool

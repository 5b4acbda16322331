#pragma once
#include <nlohmann/json_fwd.hpp>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// Writes a command's result to the file that --json names, in one piece; nothing when it names none. Keys keep the
/// order in which they were set. FileError when it cannot be written.
void write_json(const Output& output, const nlohmann::ordered_json& result);

}  // namespace lockstep::tool

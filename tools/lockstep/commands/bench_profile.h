#pragma once
#include "core/error.h"
#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// `lockstep bench step --profile`: measures, prints a table of the ops of a step, and writes it as JSON.
ExitCode print_profile(const Output& output);

}  // namespace lockstep::tool

#pragma once
#include <CLI/App.hpp>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// The subcommands of `lockstep data`.
void add_data_commands(CLI::App& command, DataOptions& options);

}  // namespace lockstep::tool

#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// The options of `lockstep launch` itself.
void add_launch_options(CLI::App& command, LaunchOptions& options);

/// Where the command that `lockstep launch` runs begins; `count` if nothing is launched.
int launched_from(int count, const char* const* arguments, const std::vector<std::string>& commands);

/// With the command that it runs.
LaunchOptions with_command(LaunchOptions launch, const char* const* begin, const char* const* end);

}  // namespace lockstep::tool

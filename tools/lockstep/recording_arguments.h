#pragma once
#include <CLI/App.hpp>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// The options of `lockstep replay`.
void add_replay_options(CLI::App& command, ReplayOptions& options);

/// The subcommands of `lockstep trace`.
void add_trace_commands(CLI::App& command, TraceOptions& options);

}  // namespace lockstep::tool

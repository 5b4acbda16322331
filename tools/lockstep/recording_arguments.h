#pragma once
#include <CLI/App.hpp>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// The options of `lockstep replay`.
void add_replay_options(CLI::App& command, ReplayOptions& options);

/// The subcommands of `lockstep trace`.
void add_trace_commands(CLI::App& command, TraceOptions& options);

/// The options of `lockstep report`.
void add_report_options(CLI::App& command, ReportOptions& options);

}  // namespace lockstep::tool

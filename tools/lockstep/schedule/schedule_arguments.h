#pragma once
#include <CLI/App.hpp>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

extern const char* const kScheduleExamples;

void add_schedule_options(CLI::App& command, ScheduleOptions& options);

/// The same options. BadInput unless they say one schedule, or all, and its sizes.
ScheduleOptions checked(const ScheduleOptions& options);

}  // namespace lockstep::tool

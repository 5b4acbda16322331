#pragma once
#include <CLI/App.hpp>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

extern const char* const kPlanExamples;

void add_plan_options(CLI::App& command, PlanOptions& options);

/// The same options. BadInput unless they say one mesh, or how many ranks.
PlanOptions checked(const PlanOptions& options);

}  // namespace lockstep::tool

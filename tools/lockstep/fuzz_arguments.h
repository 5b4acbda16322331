#pragma once
#include <CLI/App.hpp>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// The options of `lockstep fuzz`.
void add_fuzz_options(CLI::App& command, FuzzOptions& options);

extern const char* const kFuzzExamples;

}  // namespace lockstep::tool

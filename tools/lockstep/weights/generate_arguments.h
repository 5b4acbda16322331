#pragma once
#include <CLI/App.hpp>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// The options of `lockstep generate`.
void add_generate_options(CLI::App& command, GenerateCommand& options);

extern const char* const kGenerateExamples;

}  // namespace lockstep::tool

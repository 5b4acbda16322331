#pragma once
#include <CLI/App.hpp>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// The options of `lockstep fuzz`.
void add_fuzz_options(CLI::App& command, FuzzOptions& options);

/// The options of `lockstep shrink`.
void add_shrink_options(CLI::App& command, ShrinkOptions& options);

extern const char* const kFuzzExamples;
extern const char* const kShrinkExamples;

extern const char* const kMutateExamples;
void add_mutate_options(CLI::App& command, MutateOptions& options);

}  // namespace lockstep::tool

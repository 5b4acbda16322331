#pragma once
#include <CLI/App.hpp>

#include "tools/lockstep/arguments.h"

namespace lockstep::tool {

/// `lockstep checkpoint inspect|import|merge|export|diff|reshard`.
void add_checkpoint_commands(CLI::App& command, CheckpointOptions& inspect, WeightsOptions& weights);

}  // namespace lockstep::tool

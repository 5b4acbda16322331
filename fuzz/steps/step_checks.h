#pragma once
#include "fuzz/search/check.h"

namespace lockstep::fuzz {

/// Steps of every model under both numerics: "steps/llama3", "steps/llama3_native", ...
Checks step_checks();

}  // namespace lockstep::fuzz

#pragma once
#include <functional>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench scale`: how a step of 2,048 tokens (64 sequences of 32) of the debugmodel, canonical numerics,
/// changes with the ranks that share it, in milliseconds; peer: the same step on one rank, in turns. The batch stays
/// the same, so that with free cores n ranks would take 1 / n of the time.
///
///   processes_N   dp_shard=N in N processes of one thread, N = 1, 2, 4, 8. Beyond the machine's cores they take turns.
///   simulated_N   dp_shard=N in one process of one thread, N = 1 to 64: the ratio is what simulating costs.
///
/// Rows whose names fit `patterns`, for `seconds` each; `report` gets them as they come.
void measure_scale(const std::string& patterns, double seconds, const std::function<void(const BenchRow&)>& report);

}  // namespace lockstep::bench

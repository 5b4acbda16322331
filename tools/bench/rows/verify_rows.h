#pragma once
#include <functional>
#include <string>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench verify`: what checking costs, for the demo job's size (debugmodel, 4 x 128 tokens, four simulated
/// ranks), canonical numerics, one thread, in milliseconds. verified_step_vs_two_steps: a step of the mesh
/// dp_shard=2,tp=2 that is compared with one device's, state and gradients, beside the two steps alone. replica_check:
/// a step of dp_replicate=4 with the digests of all copies of its parameters, beside the step alone. Rows whose names
/// fit `patterns`; BadInput if none does.
void measure_verify(const std::string& patterns, const std::function<void(const BenchRow&)>& report);

}  // namespace lockstep::bench

#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include "runtime/plan.h"
#include "runtime/world.h"

namespace lockstep {

/// Runs a planned op: moves operands that have to move, runs the op on every local rank's shards, wraps the results.
/// Takes `count` arguments off the stack and leaves the op's results.
void run_plan(const c10::OperatorHandle& op, Plan& plan, World& world, torch::jit::Stack& stack, size_t count);

}  // namespace lockstep

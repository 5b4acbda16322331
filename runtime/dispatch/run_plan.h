#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include "runtime/context/run_context.h"
#include "runtime/planning/plan.h"
#include "runtime/tensor/mesh.h"

namespace lockstep {

/// Runs a planned op: moves operands that have to move, runs the op on the shards of every local rank of
/// the mesh, wraps the results. Takes `count` arguments off the stack and leaves the op's results.
void run_plan(const c10::OperatorHandle& op, Plan& plan, const Mesh& mesh, RunContext& context,
              torch::jit::Stack& stack, size_t count);

}  // namespace lockstep

#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

namespace lockstep {

/// The boxed kernel of every op on the mesh device: finds the op's plan (making it on first sight) and runs it.
void dispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// The same as a part of the op that runs: observers see its collectives and no op.
void dispatch_within_op(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace lockstep

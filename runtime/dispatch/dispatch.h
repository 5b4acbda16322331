#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

namespace lockstep {

/// The boxed kernel of every op on the mesh device: finds the op's plan (making it on first sight) and runs it.
void dispatch(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace lockstep

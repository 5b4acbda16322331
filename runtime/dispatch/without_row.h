#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace lockstep {

/// The boxed kernel of the ops of LibTorch's for which the built-in table has no row. A World whose rules have one runs
/// by it. Else an out form runs as its functional overload, whose result is copied into the tensor given, in that one's
/// layout; other ops run LibTorch's decomposition where it is known to be right on meshes; the rest is BadInput.
void dispatch_without_row(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace lockstep

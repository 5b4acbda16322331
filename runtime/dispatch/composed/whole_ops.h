#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace lockstep {

/// Ops that every rank computes alone, of whole operands, and whose results are replicated: the sizes of their results
/// depend on values (nonzero, masked_select, unique), or LibTorch says the sizes nowhere but in the kernel itself.
/// Operands are gathered, which is counted, and refused under the strict policy. All ranks have the same values.
bool is_whole_op(const std::string& op);
/// Whether canonical numerics has it: it decides and moves, and computes nothing that is rounded.
bool is_canonical_whole_op(const std::string& op);

/// Their boxed kernel.
void dispatch_whole(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace lockstep

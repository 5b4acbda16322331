#pragma once
#include <span>

#include "runtime/own_ops/own_op.h"

namespace lockstep {

/// The ops of all families. They live as long as the program.
std::span<const OwnOp> all_own_ops();

/// Tells the dispatcher of them: schemas, CPU kernels, composed kernels (for CUDA) and derivatives. Kernels for the
/// mesh device are not among it: runtime/dispatch registers those. Idempotent and cheap after the first call.
void define_own_ops();

}  // namespace lockstep

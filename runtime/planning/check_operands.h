#pragma once
#include "runtime/planning/rule.h"

namespace lockstep {

/// Checks the operands of a call whose sizes LibTorch does not check (an op of our own, or without a meta kernel)
/// against the row's dims: every operand has the dimensions that its part of the text says, and one letter has one size
/// everywhere. Dimensions under "..." are equal for ops of our own and may be broadcast for LibTorch's. A text that is
/// only a description checks nothing. Throws BadInput that names op, operand, dimension and both sizes.
void check_operands(const Rule& rule, const Call& call);

}  // namespace lockstep

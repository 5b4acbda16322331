#pragma once
#include "fuzz/calls/sharded_calls.h"

namespace lockstep::testing {

/// Sometimes, among the floating operands' elements: equal ones, zeros of both signs, infinities and NaN.
void plant_special_values(OpCall& call);

}  // namespace lockstep::testing

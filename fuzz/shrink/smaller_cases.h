#pragma once
#include <vector>

#include "fuzz/shrink/whole_case.h"

namespace lockstep::fuzz {

/// What is a little smaller than a case, the largest steps first: fewer ranks, axes, cuts, elements, simpler values.
/// Many of them do not run.
std::vector<WholeCase> smaller_cases(const WholeCase& whole);

}  // namespace lockstep::fuzz

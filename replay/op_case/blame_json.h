#pragma once
#include <nlohmann/json.hpp>

#include "consistency/blame.h"

/// A Blame on its way between processes, all of it.
namespace lockstep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Blame, kind, id, phase, module, op, rule, layouts, worst, collective, axis, group,
                                   ranks, pattern, before, limits, position, transient)

}  // namespace lockstep

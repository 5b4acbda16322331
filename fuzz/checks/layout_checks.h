#pragma once
#include "fuzz/search/check.h"

namespace lockstep::fuzz {

/// Any layout to any other: "layouts/values", "layouts/rows", "layouts/gradients", "layouts/threads", "layouts/faults".
Checks layout_checks();

}  // namespace lockstep::fuzz

#pragma once
#include <cstdint>
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace lockstep::pipeline {

/// BadInput that names the ranks that wait for each other, each with where it waits, for what, and behind what that
/// stands. `next`: for each rank the action that it waits at. REQUIRES: that none of them can begin, and that not all
/// ranks have come to their end.
[[noreturn]] void fail_deadlocked(const Schedule& schedule, const std::vector<int64_t>& next);

}  // namespace lockstep::pipeline

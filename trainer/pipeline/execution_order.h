#pragma once
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace lockstep::pipeline {

/// All actions in an order in which one process can carry them out: each behind what it needs, each rank's in its own
/// order. The same for the same schedule: in rounds over the ranks, of each what it can do.
/// BadInput, with the cycle of ranks that wait for each other, where there is none. REQUIRES: check_actions(schedule).
std::vector<Place> execution_order(const Schedule& schedule);

}  // namespace lockstep::pipeline

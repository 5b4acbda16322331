#pragma once
#include <span>
#include <string>

#include "replay/view/process_timeline.h"
#include "replay/view/step_costs.h"

namespace lockstep::replay {

/// What costs most, the longest first: time, share of the step, how often, and bytes of ops and collectives, by name.
/// The first rows are open to see, the others behind a click.
std::string cost_tables(const StepCosts& costs, size_t processes);

/// What each rank ran and received.
std::string ranks_table(std::span<const ProcessTimeline> processes);

}  // namespace lockstep::replay

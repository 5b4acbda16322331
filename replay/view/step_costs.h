#pragma once
#include <string>
#include <vector>

#include "replay/view/process_timeline.h"

namespace lockstep::replay {

/// What all ops of one name, or all collectives of one kind on one axis, cost in a step.
struct Cost {
  std::string name;  ///< "linear", "all_gather on tp"
  bool is_collective = false;
  uint64_t time = 0;   ///< of all processes; of an op without the ops and collectives that ran inside it
  uint64_t times = 0;  ///< in all processes
  uint64_t bytes = 0;  ///< of all ranks: what ops gave (aliases have no bytes of their own), what collectives delivered
  uint64_t most = 0;   ///< of one process
  std::string where;   ///< that process
};

struct StepCosts {
  std::vector<Cost> rows;  ///< the longest first
  uint64_t length = 0;     ///< of the step, from 0 to its last op or collective, added up over processes
  uint64_t unknown = 0;    ///< of that, in which no op and no collective was under way
};

/// REQUIRES: processes_of() gave the processes.
StepCosts costs_of(const std::vector<ProcessTimeline>& processes);

}  // namespace lockstep::replay

#pragma once
#include <string>

namespace lockstep::tool {

/// What else wants to run on this machine, and what it has.
struct MachineLoad {
  int running = 0;  ///< other threads that run or wait for a core
  int cores = 1;    ///< that this process may use
  int threads = 1;  ///< OpenMP's of this process
};
MachineLoad machine_load();

/// GOMP_SPINCOUNT: how often OpenMP's threads look for work before they sleep. Waking one takes 30 to 70 us, and a step
/// has hundreds of loops that threads share: where each thread has a core, they look for half a millisecond. Where they
/// take turns, looking costs the others' time, and a step up to ten times as long: they sleep at once.
std::string spin_count(const MachineLoad& load);

}  // namespace lockstep::tool

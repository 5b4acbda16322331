#include "tools/lockstep/waiting_threads.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace lockstep::tool {
namespace {

int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

/// The fourth field of /proc/loadavg is "running/all", this thread included. 0 where it cannot be read.
int running_now() {
  std::ifstream file("/proc/loadavg");
  double average = 0;
  int running = 1;
  file >> average >> average >> average >> running;
  return std::max(running - 1, 0);
}

/// The most of some looks: what runs pauses now and then.
int running_for_a_while() {
  constexpr int kLooks = 5;
  int most = running_now();
  for (int look = 1; look < kLooks; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    most = std::max(most, running_now());
  }
  return most;
}

}  // namespace

MachineLoad machine_load() {
  const int cores = usable_cores();
  const char* threads = std::getenv("OMP_NUM_THREADS");
  return {running_for_a_while(), cores, threads ? std::max(std::atoi(threads), 1) : cores};
}

std::string spin_count(const MachineLoad& load) { return load.running + load.threads <= load.cores ? "10000" : "0"; }

}  // namespace lockstep::tool

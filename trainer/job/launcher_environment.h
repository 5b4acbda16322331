#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "trainer/job/batching.h"

/// Which launcher, if any, started this process: read from environment variables alone.
namespace lockstep::trainer {

/// Looks a variable up; null when it is not set. `std::getenv` in production.
using Environment = std::function<const char*(const char*)>;

struct Launcher {
  std::string name;  ///< "torchrun", "Open MPI", "MPICH", "Slurm"; empty when no launcher is found
  Launch launch;     ///< simulated when no launcher is found, or when it started one process only
};

/// First match wins: RANK and WORLD_SIZE (torchrun), OMPI_COMM_WORLD_* (Open MPI), PMI_* (MPICH), SLURM_PROCID with
/// SLURM_STEP_NUM_TASKS (srun; a batch script's own SLURM_NTASKS does not mean that this process is one of many).
/// BadInput for a half-set pair, and for values that are no numbers or out of range.
Launcher detect_launcher(const Environment& variable);

/// BadInput when the launch has more than one process, for commands that cannot be one of many.
void require_single_process(const Launcher& launcher);

}  // namespace lockstep::trainer

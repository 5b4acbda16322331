#pragma once
#include <string>
#include <utility>
#include <vector>

#include "replay/format/recording.h"
#include "trainer/job/job.h"

namespace lockstep::trainer {

/// What this program runs on, as far as bits could depend on it: build id, numerics version, LibTorch, instruction set,
/// threads, MXCSR, and the environment variables of LibTorch, OpenMP and Lockstep (not the job's token). `device`: as
/// training.device has it; of a GPU that is in use the name is told.
using MachineFacts = std::vector<std::pair<std::string, std::string>>;
MachineFacts machine_facts(const std::string& device);

/// "threads: 2 there, 1 here": in what this machine, with that device, is another than `recorded`.
std::vector<std::string> machine_differences(const MachineFacts& recorded, const std::string& device);

/// Why canonical bits may be others here: "recorded by numerics version 0, this is numerics version 1: ...". Empty
/// where both are the same and for native numerics. That a recording does not say its version is told only if
/// `bits_differ`.
std::string numerics_difference(const replay::StepRecording& recording, const Job& job, bool bits_differ);

}  // namespace lockstep::trainer

#pragma once
#include <string>
#include <utility>
#include <vector>

namespace lockstep::trainer {

/// What this program runs on, as far as bits could depend on it: build id, LibTorch, instruction set, threads, MXCSR,
/// and the environment variables of LibTorch, OpenMP and Lockstep (not the job's token).
using MachineFacts = std::vector<std::pair<std::string, std::string>>;
MachineFacts machine_facts();

/// "threads: 2 there, 1 here": in what this machine is another than `recorded`.
std::vector<std::string> machine_differences(const MachineFacts& recorded);

}  // namespace lockstep::trainer

#pragma once
#include <cstdint>
#include <string>

namespace lockstep {

/// What follows "key ... :" on the first such line of a /proc file; empty when there is none.
std::string proc_value(const char* path, const std::string& key);

/// Who made this machine's processor, and which it is: "AuthenticAMD 25/17/1, AMD EPYC". "unknown" if that is not said.
std::string processor_name();

/// Memory in bytes that this machine has, or the container that this process runs in (cgroup v2) if that is less.
int64_t memory_bytes();

}  // namespace lockstep

#pragma once
#include <cstdint>

#include "runtime/context/numerics.h"

/// Random programs of ops, views, writes and redistributions.
namespace lockstep::testing {

/// A property, to be run inside RapidCheck: after every step of a program on a random mesh each of its tensors is what
/// it is on one device, bit for bit (small integers are exact in any order), and what one device refuses is refused.
/// Counts in program_counts().
void a_program_gives_one_devices_values(lockstep::Numerics numerics);

/// Programs that went to their ends, their steps, and those of the steps that were refused as they should be.
struct ProgramCounts {
  int64_t programs = 0, steps = 0, refusals = 0;
};
ProgramCounts& program_counts();

}  // namespace lockstep::testing

#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/capture/op_timer.h"

/// Who and what was slow in a step, from what each process took of time.
namespace lockstep::trainer {

/// All ops of one name in a process, without the ops and collectives that ran inside of them.
struct OpTime {
  std::string name;
  uint64_t nanoseconds = 0, times = 0;
};

/// A process: one rank, or all that it simulates, which have one time together.
struct ProcessTime {
  std::string name;                 ///< "rank 2", "ranks 0-3"
  uint64_t length = 0, waited = 0;  ///< nanoseconds of the step, and of standing still for messages
  std::vector<OpTime> ops;          ///< the slowest first

  /// What it took itself: a rank that is late has more than others, who wait for it.
  uint64_t own() const { return length > waited ? length - waited : 0; }
};

/// REQUIRES: one step of all ranks of one process.
ProcessTime time_of(std::span<const replay::TimedStep> ranks);

/// As text, for other ranks, and back. `text` is one that this gave.
std::string to_text(const ProcessTime& process);
ProcessTime process_time_of(const std::string& text);

/// "slowest rank 2: 341 ms of its own, all ranks 300 ms in the mean; slowest op linear: 121 ms in 96 calls on rank 2".
/// REQUIRES: one process at least.
std::string slowest_text(std::span<const ProcessTime> processes);

}  // namespace lockstep::trainer

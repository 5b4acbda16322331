#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/format/recording.h"

namespace lockstep::replay {

/// One step of some ranks as a Chrome trace (JSON; chrome://tracing and Perfetto open it): a process per rank, with a
/// track of ops and one of collectives. Times are those of each rank's own clock since its step began.
/// `waited`: nanoseconds that each collective of each rank stood still for messages; empty: not known.
std::string chrome_trace(std::span<const StepRecording> ranks, std::span<const std::vector<uint64_t>> waited = {});

}  // namespace lockstep::replay

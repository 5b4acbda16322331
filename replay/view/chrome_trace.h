#pragma once
#include <span>
#include <string>

#include "replay/format/recording.h"

namespace lockstep::replay {

/// One step of some ranks as a Chrome trace (JSON; chrome://tracing and Perfetto open it): a process per rank, with a
/// track of ops and one of collectives. Times are those of each rank's own clock since its step began.
std::string chrome_trace(std::span<const StepRecording> ranks);

}  // namespace lockstep::replay

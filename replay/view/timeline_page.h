#pragma once
#include <span>
#include <string>

#include "replay/format/recording.h"

namespace lockstep::replay {

/// One step of some ranks as an HTML page that needs nothing else, scripts included: a track of ops and one of
/// collectives for each rank, what a bar is under the pointer, and tables of where the time and the bytes went.
std::string timeline_page(std::span<const StepRecording> ranks);

}  // namespace lockstep::replay

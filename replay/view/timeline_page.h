#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replay/format/recording.h"

namespace lockstep::replay {

/// What a page says of the job, from who can read it: names and values, such as ("mesh", "dp_shard=2,tp=2").
struct TimelineHead {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;
};

/// One step of some ranks as an HTML page that needs nothing else, scripts included: the job and what was received,
/// what costs most, and the ops and collectives of each process over time, on three scales: the step, its phases, and
/// pieces of these. Ranks that one process simulated are shown as that process. What the recordings do not hold is
/// said.
std::string timeline_page(std::span<const StepRecording> ranks, const TimelineHead& head = {});

}  // namespace lockstep::replay

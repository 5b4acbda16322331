#pragma once
#include <span>
#include <string>

#include "replay/view/process_timeline.h"

namespace lockstep::replay {

/// What processes did in a window, as an SVG: a time axis with round times, and for each process a track of its ops,
/// coloured by phase, and one of its collectives. What runs at once, or inside another, stands in lanes below each
/// other. What a bar is is its <title>; many that are too narrow to be told apart are one bar that says so.
/// REQUIRES: the window is not empty.
std::string timeline_drawing(std::span<const ProcessTimeline> processes, TimeWindow window);

/// The colours of the phases that occur, and of collectives.
std::string timeline_legend(std::span<const ProcessTimeline> processes);

/// The CSS of both.
extern const char* const kTimelineStyle;

}  // namespace lockstep::replay

#pragma once
#include <string>
#include <vector>

#include "replay/view/process_timeline.h"

namespace lockstep::replay {

/// A part of a step, to be drawn on a scale of its own.
struct StepSection {
  std::string name;  ///< "forward"; with several microbatches "microbatch 1, forward"
  TimeWindow window;
};

/// The step from its begin to its end in the parts that the first process went through: each lasts until the first op
/// of the next. What is computed again belongs to the backward pass that needs it. Where processes go through the same
/// parts, a part lasts from the first one's begin to the last one's end: each has a clock of its own.
std::vector<StepSection> sections_of(const std::vector<ProcessTimeline>& processes);

/// The window cut at its round times (round_part()) into at most `most` + 1 pieces.
std::vector<TimeWindow> pieces_of(TimeWindow window, size_t most);

}  // namespace lockstep::replay

#pragma once
#include <string>

#include "trainer/pipeline/timeline.h"

namespace lockstep::pipeline {

/// A line for each rank, time from left to right: each action as what labels.h says, filled up with '-'; '.' where the
/// rank waits; then the legend. An action that is too narrow for its label has the letter and the last digit of
/// the microbatch; in one column the digit of a forward, the letter of a backward. What is longer than `columns` is
/// cut, and says so in a last line.
std::string text_picture(const Schedule& schedule, const Timeline& timeline, int64_t columns);

}  // namespace lockstep::pipeline

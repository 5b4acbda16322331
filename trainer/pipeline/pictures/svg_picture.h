#pragma once
#include <string>

#include "trainer/pipeline/timeline.h"

namespace lockstep::pipeline {

/// A drawing that needs no other file: a row for each rank, time from left to right, a colour for each kind, a lighter
/// one for each further stage of a rank; an action that overlaps has a dark edge. Each says under the pointer what it
/// is, and when. Of a length that makes the labels fit.
std::string svg_picture(const Schedule& schedule, const Timeline& timeline);

}  // namespace lockstep::pipeline

#pragma once
#include "replay/view/timeline_page.h"

namespace lockstep::tool {

/// What a recording says of its job and machine. Of a job that this build cannot read it says why.
replay::TimelineHead timeline_head(const replay::StepRecording& recording);

}  // namespace lockstep::tool

#pragma once
#include "trainer/pipeline/kinds/schedule_kinds.h"

namespace lockstep::pipeline {

/// ZB-V (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 6): two stages per rank, placed down and up
/// again, backwards in two parts. Where F, I and W take equally long, moving takes none and there are 2 p - 1
/// microbatches or more, no rank ever waits between its first and its last action. It holds 2 p activations of its
/// halves at most, as much as 1F1B's p. The list of actions is that of PyTorch 2.11's ScheduleZBVZeroBubble: with fewer
/// microbatches than 2 p - 1 it is the list for as many, without those that are not there. REQUIRES: two stages per
/// rank.
Schedule zero_bubble_v(PipelineSize size);

}  // namespace lockstep::pipeline

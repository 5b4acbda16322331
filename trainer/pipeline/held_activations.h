#pragma once
#include <cstdint>
#include <vector>

#include "trainer/pipeline/schedule.h"

namespace lockstep::pipeline {

/// The most activations that are held at a time. An activation is what one stage keeps of one microbatch, from the
/// beginning of F to the end of B or W. I lets nothing go: W needs the inputs that F kept. (It lets go what only the
/// gradients of inputs need, so after it this counts a little too much.) It depends on the order alone, not on times.
struct HeldActivations {
  std::vector<int64_t> of_rank, of_stage;
};

/// REQUIRES: check_actions(schedule).
HeldActivations held_activations(const Schedule& schedule);

}  // namespace lockstep::pipeline

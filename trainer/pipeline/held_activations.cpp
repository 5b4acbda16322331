#include "trainer/pipeline/held_activations.h"

#include <algorithm>

namespace lockstep::pipeline {

HeldActivations held_activations(const Schedule& schedule) {
  HeldActivations most;
  most.of_stage.resize(static_cast<size_t>(schedule.stages()));
  std::vector<int64_t> by_stage(static_cast<size_t>(schedule.stages()));
  for (const auto& actions : schedule.ranks) {
    int64_t held = 0, most_of_rank = 0;
    for (const auto& action : actions) {
      const auto stage = static_cast<size_t>(action.stage);
      const int64_t change = action.kind == ActionKind::kForward ? 1 : ends_microbatch(action.kind) ? -1 : 0;
      most_of_rank = std::max(most_of_rank, held += change);
      most.of_stage[stage] = std::max(most.of_stage[stage], by_stage[stage] += change);
    }
    most.of_rank.push_back(most_of_rank);
  }
  return most;
}

}  // namespace lockstep::pipeline

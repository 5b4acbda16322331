#include "trainer/pipeline/kinds/zero_bubble_v.h"

#include <algorithm>

#include "trainer/pipeline/kinds/v_rank.h"
#include "trainer/pipeline/placement.h"

namespace lockstep::pipeline {
namespace {

/// Both parts of a backward, one behind the other.
void backward_parts(VRank& rank, Leg leg) {
  rank.backward_input(leg);
  rank.backward_weight(leg);
}

/// Until the first microbatch has gone down and up, and as many have come back as are on their way.
void warm_up(VRank& actions, int64_t rank, int64_t ranks) {
  for (int64_t i = 0; i < 2 * (ranks - rank) - 1; ++i) actions.forward(Leg::kDown);
  for (int64_t i = 0; i < rank; ++i) {
    actions.forward(Leg::kUp);
    actions.forward(Leg::kDown);
  }
  for (int64_t i = 0; i < ranks - rank; ++i) {
    actions.forward(Leg::kUp);
    backward_parts(actions, Leg::kUp);
  }
}

/// One microbatch goes down, one comes back from there, one goes up, one comes back from there.
void steady(VRank& actions, int64_t microbatches) {
  while (actions.forwards(Leg::kUp) < actions.forwards(Leg::kDown) || actions.forwards(Leg::kDown) < microbatches) {
    if (actions.forwards(Leg::kDown) < microbatches) actions.forward(Leg::kDown);
    backward_parts(actions, Leg::kDown);
    actions.forward(Leg::kUp);
    backward_parts(actions, Leg::kUp);
  }
}

/// Gradients of inputs first; those of weights fill what would be waiting.
void cool_down(VRank& actions, int64_t rank, int64_t ranks) {
  for (int64_t i = 0; i < rank; ++i) {
    actions.backward_input(Leg::kDown);
    actions.backward_input(Leg::kUp);
  }
  for (int64_t i = 0; i < ranks - rank; ++i) backward_parts(actions, Leg::kDown);
  for (int64_t i = 0; i < rank; ++i) actions.backward_weight(Leg::kUp);
  for (int64_t i = 0; i < rank; ++i) actions.backward_weight(Leg::kDown);
}

}  // namespace

Schedule zero_bubble_v(PipelineSize size) {
  Schedule schedule{"", size.microbatches, v_placement(size.ranks), {}};
  for (int64_t rank = 0; rank < size.ranks; ++rank) {
    VRank actions(rank, size.ranks, size.microbatches);
    warm_up(actions, rank, size.ranks);
    steady(actions, std::max(2 * size.ranks - 1, size.microbatches));
    cool_down(actions, rank, size.ranks);
    schedule.ranks.push_back(actions.take());
  }
  return schedule;
}

}  // namespace lockstep::pipeline

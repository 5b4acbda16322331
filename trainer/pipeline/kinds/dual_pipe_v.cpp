#include "trainer/pipeline/kinds/dual_pipe_v.h"

#include "core/error.h"
#include "trainer/pipeline/kinds/v_rank.h"
#include "trainer/pipeline/placement.h"

namespace lockstep::pipeline {
namespace {

/// Forwards down until the first microbatch comes up; then up as well, with backwards of what has come to the end.
void warm_up(VRank& actions, int64_t rank, int64_t ranks) {
  for (int64_t i = 0; i < 2 * (ranks - 1 - rank); ++i) actions.forward(Leg::kDown);
  for (int64_t i = 0; i < rank + 1; ++i) {
    actions.forward(Leg::kDown);
    actions.forward(Leg::kUp);
  }
  for (int64_t i = 0; i < ranks - 1 - rank; ++i) {
    actions.backward_input(Leg::kUp);
    actions.oldest_backward_weight();
    actions.forward(Leg::kUp);
  }
}

/// Pairs: down with a backward up, up with a backward down. The last rank does its first pair one by one, as it would
/// wait for the backward.
void steady(VRank& actions, int64_t rank, int64_t ranks, int64_t microbatches) {
  for (int64_t i = 0; i < microbatches - 2 * ranks + rank + 1; ++i) {
    if (i == 0 && rank == ranks - 1) {
      actions.forward(Leg::kDown);
      actions.backward(Leg::kUp);
    } else {
      actions.overlapped(Leg::kDown, Leg::kUp);
    }
    actions.overlapped(Leg::kUp, Leg::kDown);
  }
  for (int64_t i = 0; i < ranks - 1 - rank; ++i) {
    actions.backward(Leg::kUp);
    actions.overlapped(Leg::kUp, Leg::kDown);
  }
}

void backward(VRank& actions, Leg leg, bool in_parts) {
  in_parts ? actions.backward_input(leg) : actions.backward(leg);
}

/// The second half of these backwards leaves weights' gradients for the time in which it would wait.
void cool_down(VRank& actions, int64_t rank, int64_t ranks) {
  const int64_t backwards = 2 * (rank + 1), whole = (rank + 1) / 2 * 2 + (rank % 2 == 0 ? 1 : 0);
  for (int64_t i = 0; i < backwards; ++i) backward(actions, i % 2 == 0 ? Leg::kUp : Leg::kDown, i >= whole);
  for (int64_t i = 0; i < ranks - 1 - rank; ++i) {
    actions.oldest_backward_weight();
    backward(actions, Leg::kDown, true);
  }
  for (int64_t i = 0; i < rank + 1; ++i) actions.oldest_backward_weight();
}

}  // namespace

Schedule dual_pipe_v(PipelineSize size) {
  if (size.microbatches < 2 * size.ranks)
    fail<BadInput>("DualPipeV needs as many microbatches as stages, {}, to keep both directions busy; there are {}.",
                   2 * size.ranks, size.microbatches);
  Schedule schedule{"", size.microbatches, v_placement(size.ranks), {}};
  for (int64_t rank = 0; rank < size.ranks; ++rank) {
    VRank actions(rank, size.ranks, size.microbatches);
    warm_up(actions, rank, size.ranks);
    steady(actions, rank, size.ranks, size.microbatches);
    cool_down(actions, rank, size.ranks);
    schedule.ranks.push_back(actions.take());
  }
  return schedule;
}

}  // namespace lockstep::pipeline

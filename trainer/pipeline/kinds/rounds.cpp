#include "trainer/pipeline/kinds/rounds.h"

#include <algorithm>

#include "core/error.h"
#include "trainer/pipeline/placement.h"

namespace lockstep::pipeline {
namespace {

/// What a rank does in its turns: its k-th forward, and its k-th backward.
struct Turns {
  PipelineSize size;
  int64_t rank = 0;
  int64_t round = 1;  ///< microbatches

  int64_t count() const { return size.stages_per_rank * size.microbatches; }
  Action forward(int64_t k) const { return action(ActionKind::kForward, k, k / round % size.stages_per_rank); }
  Action backward(ActionKind kind, int64_t k) const {
    return action(kind, k, size.stages_per_rank - 1 - k / round % size.stages_per_rank);
  }

 private:
  Action action(ActionKind kind, int64_t k, int64_t loop) const {
    const int64_t rounds_before = k / (round * size.stages_per_rank);
    return {kind, loop * size.ranks + rank, rounds_before * round + k % round};
  }
};

/// BadInput if the microbatches do not divide. With one stage per rank rounds make no difference.
int64_t round_of(const PipelineSize& size) {
  if (size.stages_per_rank == 1) return size.microbatches;
  const int64_t rounds = std::max<int64_t>(1, size.microbatches / size.ranks);
  if (size.microbatches % rounds != 0)
    fail<BadInput>(
        "{} microbatches do not divide into {} rounds, in each of which the {} ranks go through all their stages. "
        "Choose "
        "{} or {} microbatches.",
        size.microbatches, rounds, size.ranks, size.microbatches / size.ranks * size.ranks,
        (size.microbatches / size.ranks + 1) * size.ranks);
  return size.microbatches / rounds;
}

/// `warm_up` forwards, or all if there are fewer; then forward and backward in turn; then the backwards that are left.
std::vector<Action> whole_backwards(const Turns& turns, int64_t warm_up) {
  std::vector<Action> actions;
  for (int64_t turn = 0; turn < turns.count() + warm_up; ++turn) {
    if (turn < turns.count()) actions.push_back(turns.forward(turn));
    if (turn >= warm_up) actions.push_back(turns.backward(ActionKind::kBackward, turn - warm_up));
  }
  return actions;
}

/// The same with backwards in two parts, the second `lag` backwards later.
std::vector<Action> split_backwards(const Turns& turns, int64_t warm_up, int64_t lag) {
  std::vector<Action> actions;
  for (int64_t turn = 0; turn < turns.count() + warm_up + lag; ++turn) {
    if (turn < turns.count()) actions.push_back(turns.forward(turn));
    const int64_t input = turn - warm_up, weight = input - lag;
    if (input >= 0 && input < turns.count()) actions.push_back(turns.backward(ActionKind::kBackwardInput, input));
    if (weight >= 0) actions.push_back(turns.backward(ActionKind::kBackwardWeight, weight));
  }
  return actions;
}

/// `actions_of(turns, warm_up)` for each rank. `per_hop`: forwards more for each rank between it and the last.
template <class ActionsOf>
Schedule each_rank(const PipelineSize& size, int64_t per_hop, ActionsOf actions_of) {
  Schedule schedule{"", size.microbatches, loop_placement(size.ranks, size.stages_per_rank), {}};
  const int64_t round = round_of(size);
  for (int64_t rank = 0; rank < size.ranks; ++rank) {
    const Turns turns{size, rank, round};
    const int64_t warm_up = (size.stages_per_rank - 1) * round + per_hop * (size.ranks - 1 - rank);
    schedule.ranks.push_back(actions_of(turns, warm_up));
  }
  return schedule;
}

}  // namespace

Schedule gpipe(PipelineSize size) {
  return each_rank(size, 0, [](const Turns& turns, int64_t) { return whole_backwards(turns, turns.count()); });
}

Schedule one_forward_one_backward(PipelineSize size) { return each_rank(size, 1, whole_backwards); }

Schedule interleaved(PipelineSize size) { return each_rank(size, 2, whole_backwards); }

Schedule zero_bubble_h1(PipelineSize size) { return interleaved_zero_bubble(size); }

Schedule interleaved_zero_bubble(PipelineSize size) {
  return each_rank(size, 1,
                   [](const Turns& turns, int64_t warm_up) { return split_backwards(turns, warm_up, turns.rank); });
}

}  // namespace lockstep::pipeline

#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "trainer/pipeline/action.h"

namespace lockstep::pipeline {

/// Which of the two stages of a rank whose stages lie in a V.
enum class Leg : uint8_t { kDown, kUp };

/// Writes the actions of such a rank: each takes the next microbatch of its stage and kind.
class VRank {
 public:
  /// Microbatches from `microbatches` on are counted, but not written.
  VRank(int64_t rank, int64_t ranks, int64_t microbatches);

  void forward(Leg leg);
  void backward(Leg leg);
  void backward_input(Leg leg);
  /// Of the oldest microbatch of this stage whose weight gradients are due; of either stage. Nothing if none is.
  void backward_weight(Leg leg);
  void oldest_backward_weight();
  /// A forward and a backward that begin together.
  void overlapped(Leg forward, Leg backward);

  /// Forwards so far.
  int64_t forwards(Leg leg) const { return forwards_[static_cast<size_t>(leg)]; }

  std::vector<Action> take() { return std::move(actions_); }

 private:
  void write(ActionKind kind, Leg leg, int64_t microbatch);

  int64_t rank_, ranks_, microbatches_;
  std::array<int64_t, 2> forwards_{}, backwards_{};
  std::deque<std::pair<Leg, int64_t>> due_;  // inputs' gradients are there, weights' are not
  std::vector<Action> actions_;
};

}  // namespace lockstep::pipeline

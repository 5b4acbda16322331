#include "trainer/pipeline/kinds/v_rank.h"

#include <algorithm>

namespace lockstep::pipeline {

VRank::VRank(int64_t rank, int64_t ranks, int64_t microbatches)
    : rank_(rank), ranks_(ranks), microbatches_(microbatches) {}

void VRank::write(ActionKind kind, Leg leg, int64_t microbatch) {
  if (microbatch < microbatches_)
    actions_.push_back({kind, leg == Leg::kDown ? rank_ : 2 * ranks_ - 1 - rank_, microbatch});
}

void VRank::forward(Leg leg) { write(ActionKind::kForward, leg, forwards_[static_cast<size_t>(leg)]++); }

void VRank::backward(Leg leg) { write(ActionKind::kBackward, leg, backwards_[static_cast<size_t>(leg)]++); }

void VRank::backward_input(Leg leg) {
  const int64_t microbatch = backwards_[static_cast<size_t>(leg)]++;
  write(ActionKind::kBackwardInput, leg, microbatch);
  due_.emplace_back(leg, microbatch);
}

void VRank::backward_weight(Leg leg) {
  const auto found = std::find_if(due_.begin(), due_.end(), [&](const auto& due) { return due.first == leg; });
  if (found == due_.end()) return;
  write(ActionKind::kBackwardWeight, leg, found->second);
  due_.erase(found);
}

void VRank::oldest_backward_weight() {
  if (!due_.empty()) backward_weight(due_.front().first);
}

void VRank::overlapped(Leg forward_leg, Leg backward_leg) {
  forward(forward_leg);
  actions_.back().overlaps_next = true;
  backward(backward_leg);
}

}  // namespace lockstep::pipeline

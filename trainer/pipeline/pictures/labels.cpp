#include "trainer/pipeline/pictures/labels.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::pipeline {

Labels::Labels(const Schedule& schedule) {
  std::vector<size_t> of_rank(schedule.ranks.size());
  for (const int64_t rank : schedule.rank_of_stage) {
    numbers_.push_back(of_rank[static_cast<size_t>(rank)]++);
    most_ = std::max(most_, numbers_.back() + 1);
  }
  for (const auto& actions : schedule.ranks)
    for (const auto& action : actions) {
      width_ = std::max(width_, of(action).size());
      has_parts_ = has_parts_ || action.kind == ActionKind::kBackwardInput;
    }
}

std::string Labels::of(const Action& action) const {
  if (most_ > 2) return text_of(action);
  const char letter = letter_of(action.kind);
  const bool is_second = number_on_rank(action.stage) == 1;
  return fmt::format("{}{}", is_second ? static_cast<char>(letter - 'A' + 'a') : letter, action.microbatch);
}

std::string Labels::legend() const {
  const auto* parts = has_parts_ ? "B backward, I its gradients of inputs, W those of weights" : "B backward";
  const auto* stages = most_ == 2  ? "; small letters: the rank's second stage"
                       : most_ > 2 ? "; before it the stage"
                                   : "";
  return fmt::format("F forward, {}, and the microbatch{}", parts, stages);
}

}  // namespace lockstep::pipeline

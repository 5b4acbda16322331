#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/pipeline/action.h"

namespace lockstep::pipeline {

/// What every rank of a pipeline does, in which order. Nothing says when: an action begins as soon as what stands
/// before it on its rank has ended and what it needs is there (needs.h). check() says whether it can be carried out.
struct Schedule {
  std::string name;  ///< as users know it, for messages: "1F1B", or a file
  int64_t microbatches = 0;
  std::vector<int64_t> rank_of_stage;      ///< for each stage, first to last
  std::vector<std::vector<Action>> ranks;  ///< for each rank what it does

  int64_t stages() const { return static_cast<int64_t>(rank_of_stage.size()); }

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Where an action stands.
struct Place {
  int64_t rank = 0, index = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

inline const Action& action_at(const Schedule& schedule, const Place& place) {
  return schedule.ranks[static_cast<size_t>(place.rank)][static_cast<size_t>(place.index)];
}

}  // namespace lockstep::pipeline

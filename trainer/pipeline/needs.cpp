#include "trainer/pipeline/needs.h"

namespace lockstep::pipeline {

Needs::Part Needs::part_of(ActionKind kind) {
  if (kind == ActionKind::kForward) return kForwardPart;
  return gives_input_gradients(kind) ? kInputPart : kWeightPart;
}

Needs::Needs(const Schedule& schedule)
    : schedule_(schedule), places_(static_cast<size_t>(schedule.stages() * schedule.microbatches)) {
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (size_t index = 0; index < schedule.ranks[rank].size(); ++index) {
      const auto& action = schedule.ranks[rank][index];
      auto& parts = places_[static_cast<size_t>(action.stage * schedule.microbatches + action.microbatch)];
      parts[part_of(action.kind)] = {static_cast<int64_t>(rank), static_cast<int64_t>(index)};
    }
}

const Place& Needs::find(Part part, int64_t stage, int64_t microbatch) const {
  return places_[static_cast<size_t>(stage * schedule_.microbatches + microbatch)][part];
}

void Needs::add_own(const Place& place, std::vector<Place>& needs) const {
  const auto& [kind, stage, microbatch, _] = action_at(schedule_, place);
  const bool is_last = stage + 1 == schedule_.stages();
  switch (part_of(kind)) {
    case kForwardPart:
      if (stage > 0) needs.push_back(find(kForwardPart, stage - 1, microbatch));
      break;
    case kInputPart:
      needs.push_back(find(kForwardPart, stage, microbatch));
      if (!is_last) needs.push_back(find(kInputPart, stage + 1, microbatch));
      break;
    default:
      needs.push_back(find(kInputPart, stage, microbatch));
  }
}

std::vector<Place> Needs::of(const Place& place) const {
  std::vector<Place> needs;
  add_own(place, needs);
  if (action_at(schedule_, place).overlaps_next) add_own({place.rank, place.index + 1}, needs);
  return needs;
}

}  // namespace lockstep::pipeline

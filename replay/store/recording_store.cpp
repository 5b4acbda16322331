#include "replay/store/recording_store.h"

#include <algorithm>

namespace lockstep::replay {
namespace {

bool starts_with_state(const std::vector<StepRecording>& step) { return step.empty() || step[0].has_state; }

}  // namespace

std::vector<StepRecording> RecordingStore::add(std::vector<StepRecording> step) {
  ring_.push_back(std::move(step));
  if (mode_.ring == 0) write_out();
  // A ring begins with a step that has a state; whole stretches leave it.
  auto drop = ring_.size() - std::min(ring_.size(), static_cast<size_t>(mode_.ring));
  while (drop > 0 && !starts_with_state(ring_[drop])) --drop;
  std::vector<StepRecording> left;
  for (; drop > 0; --drop) {
    std::move(ring_.front().begin(), ring_.front().end(), std::back_inserter(left));
    ring_.pop_front();
  }
  return left;
}

void RecordingStore::write_out() {
  for (auto& step : ring_)
    for (auto& recording : step) writer_.push(std::move(recording));
  ring_.clear();
}

}  // namespace lockstep::replay

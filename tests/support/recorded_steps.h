#pragma once
#include <string>
#include <vector>

#include "replay/store/recording_writer.h"
#include "tests/support/message_of.h"
#include "tests/support/recordings.h"

/// Folders of recordings for tests: steps of rank 3 of 200.
namespace lockstep::testing {

inline constexpr const char* kJobText = "[training]\n";

/// A complete step; `seed` and the step decide what is in it.
inline replay::StepRecording step_of(int64_t step, bool has_state, uint64_t seed = 1) {
  auto recording = random_recording(seed + static_cast<uint64_t>(step));
  recording.rank = 3;
  recording.world = 200;
  recording.step = step;
  recording.job = kJobText;
  recording.complete = true;
  recording.reason.clear();
  recording.has_state = has_state;
  if (!has_state) recording.state.clear();
  return recording;
}

inline void record(const std::string& folder, const std::vector<replay::StepRecording>& recordings) {
  replay::RecordingWriter writer(folder, 1 << 20);
  for (const auto& recording : recordings) writer.push(recording);
  writer.finish();
}

}  // namespace lockstep::testing

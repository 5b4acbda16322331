#pragma once
#include <deque>
#include <string>
#include <vector>

#include "replay/format/payload_mode.h"
#include "replay/format/recording.h"
#include "replay/store/recording_writer.h"

namespace lockstep::replay {

/// Where finished steps go: to the disk at once, or round a ring until write_out().
class RecordingStore {
 public:
  /// `limit_bytes`: RecordingWriter's.
  RecordingStore(const std::string& folder, PayloadMode mode, uint64_t limit_bytes)
      : mode_(mode), writer_(folder, limit_bytes) {}

  /// RecordingWriter's.
  void open(int32_t rank, int32_t world, std::string_view job) { writer_.open(rank, world, job); }
  /// One step of every local rank. Gives the steps that have left the ring.
  std::vector<StepRecording> add(std::vector<StepRecording> step);
  /// Writes what the ring holds, too.
  void write_out();
  /// Returns when all that is to be written is on the disk and acknowledged. Throws FileError.
  void finish() { writer_.finish(); }

 private:
  PayloadMode mode_;
  RecordingWriter writer_;
  std::deque<std::vector<StepRecording>> ring_;
};

}  // namespace lockstep::replay

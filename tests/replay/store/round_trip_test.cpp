#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <thread>

#include "core/error.h"
#include "replay/store/recording_file.h"
#include "tests/support/recordings.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::random_recording;

RC_GTEST_PROP(RecordingFile, EndsAsItBegan, (uint64_t seed)) {
  const auto recording = random_recording(seed);
  RC_ASSERT(from_file(to_file(recording), "x.h5") == recording);
}

RC_GTEST_PROP(RecordingFile, EqualRecordingsGiveEqualBytes, (uint64_t seed)) {
  RC_ASSERT(to_file(random_recording(seed)) == to_file(random_recording(seed)));
}

TEST(RecordingFile, HoldsNoTimes) {
  const auto recording = random_recording(1);
  const auto now = to_file(recording);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5 counts in seconds
  EXPECT_TRUE(to_file(recording) == now);
}

TEST(RecordingFile, TheEmptyOne) {
  const StepRecording empty;
  EXPECT_TRUE(from_file(to_file(empty), "x.h5") == empty);
}

TEST(RecordingFile, EveryDtypeAndScalars) {
  StepRecording recording;
  recording.has_state = true;
  for (const auto& dtype : all_dtypes()) {
    recording.state.push_back({std::string(dtype.name) + ".0", dtype.number, {}, Bytes(dtype.size, std::byte{7})});
    recording.state.push_back({std::string(dtype.name) + ".1", dtype.number, {3}, Bytes(3 * dtype.size, std::byte{9})});
    recording.state.push_back({std::string(dtype.name) + ".2", dtype.number, {2, 0, 5}, {}});
  }
  std::sort(recording.state.begin(), recording.state.end(), [](auto& a, auto& b) { return a.name < b.name; });
  EXPECT_TRUE(from_file(to_file(recording), "x.h5") == recording);
}

}  // namespace
}  // namespace lockstep::replay

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "replay/recording_folder.h"
#include "replay/recording_writer.h"
#include "tests/support/recordings.h"
#include "tests/trainer/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::random_recording;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t kLimit = 1 << 20;

/// Step `step` of rank 3 of 4; the seed decides what is in it.
StepRecording step_of(int64_t step, bool has_state, uint64_t seed = 1) {
  auto recording = random_recording(seed + static_cast<uint64_t>(step));
  recording.rank = 3;
  recording.world = 200;
  recording.step = step;
  recording.job = "[training]\n";
  recording.complete = true;
  recording.reason.clear();
  recording.has_state = has_state;
  if (!has_state) recording.state.clear();
  return recording;
}

void record(const std::string& folder, const std::vector<StepRecording>& recordings) {
  RecordingWriter writer(folder, kLimit);
  for (const auto& recording : recordings) writer.push(recording);
  writer.finish();
}

template <class Family, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Family& error) {
    return error.what();
  }
  return "no such error";
}

TEST(RecordingFolder, StepsComeBackAsTheyWerePushed) {
  const TemporaryFolder folder;
  record(folder.path(), {step_of(7, true), step_of(8, false), step_of(9, false)});
  const RecordingFolder recording(folder.path());
  EXPECT_THAT(recording.ranks(), ElementsAre(3));
  EXPECT_THAT(recording.steps(3), ElementsAre(7, 8, 9));
  for (const auto step : recording.steps(3)) EXPECT_TRUE(recording.read(3, step) == step_of(step, step == 7));
  EXPECT_EQ(recording.first_with_state(3, 9), 7);
  EXPECT_THAT(recording.damage(), IsEmpty());
  EXPECT_THAT(recording.leftovers(), IsEmpty());
}

TEST(RecordingFolder, AStepRecordedAgainCountsAndTheOldFileStays) {
  const TemporaryFolder folder;
  record(folder.path(), {step_of(7, true)});
  record(folder.path(), {step_of(7, true, 50)});
  const RecordingFolder recording(folder.path());
  EXPECT_EQ(recording.entry(3, 7).file, "rank3-step7.2.h5");
  EXPECT_TRUE(recording.read(3, 7) == step_of(7, true, 50));
  EXPECT_THAT(recording.leftovers(), IsEmpty());
}

TEST(RecordingFolder, AnotherJobOrWorldIsRefused) {
  const TemporaryFolder folder;
  record(folder.path(), {step_of(7, true)});
  auto other = step_of(8, true);
  other.job = "[model]\n";
  EXPECT_THAT(message_of<BadInput>([&] { record(folder.path(), {other}); }), HasSubstr("is of another job"));
  other = step_of(8, true);
  other.world = 199;
  EXPECT_EQ(message_of<BadInput>([&] { record(folder.path(), {other}); }),
            folder.path() + "/rank3.index is of 200 ranks, this run has 199. Record into another folder.");
}

}  // namespace
}  // namespace lockstep::replay

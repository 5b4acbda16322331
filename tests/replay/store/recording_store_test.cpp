#include "replay/store/recording_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/store/recording_folder.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::step_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The steps that leave when this one comes. Each `every`-th has a state, from step 1 on.
std::vector<int64_t> leave(RecordingStore& store, int64_t step, int64_t every) {
  std::vector<int64_t> left;
  for (const auto& recording : store.add({step_of(step, (step - 1) % every == 0)})) left.push_back(recording.step);
  return left;
}

TEST(RecordingStore, ARingKeepsTheLastStepsAlone) {
  const TemporaryFolder folder;
  RecordingStore store(folder.path(), {true, 3}, 1 << 20);
  for (int64_t step = 1; step <= 3; ++step) EXPECT_THAT(leave(store, step, 1), IsEmpty());
  for (int64_t step = 4; step <= 6; ++step) EXPECT_THAT(leave(store, step, 1), ElementsAre(step - 3));
  store.write_out(), store.finish();
  EXPECT_THAT(RecordingFolder(folder.path()).steps(3), ElementsAre(4, 5, 6));
}

/// It begins with a step that can be replayed.
TEST(RecordingStore, WholeStretchesLeaveARing) {
  const TemporaryFolder folder;
  RecordingStore store(folder.path(), {true, 2}, 1 << 20);
  for (int64_t step = 1; step <= 4; ++step) EXPECT_THAT(leave(store, step, 3), IsEmpty()) << step;
  EXPECT_THAT(leave(store, 5, 3), ElementsAre(1, 2, 3));
  for (int64_t step = 6; step <= 7; ++step) EXPECT_THAT(leave(store, step, 3), IsEmpty()) << step;
  EXPECT_THAT(leave(store, 8, 3), ElementsAre(4, 5, 6));
}

TEST(RecordingStore, WithoutARingNothingStays) {
  const TemporaryFolder folder;
  RecordingStore store(folder.path(), {true, 0}, 1 << 20);
  for (int64_t step = 1; step <= 3; ++step) EXPECT_THAT(leave(store, step, 2), IsEmpty());
  store.finish();
  EXPECT_THAT(RecordingFolder(folder.path()).steps(3), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace lockstep::replay

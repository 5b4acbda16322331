// What two recordings say of the numerics versions that made them.
#include "replay/view/trace_diff.h"

#include <gtest/gtest.h>

namespace lockstep::replay {
namespace {

StepRecording of_version(const char* version, uint64_t loss = 1) {
  StepRecording recording;
  recording.scalars = {{"loss", loss}};
  if (version) recording.machine = {{"numerics_version", version}};
  return recording;
}

TEST(TraceDiff, NamesTwoNumericsVersions) {
  EXPECT_EQ(diff(of_version("4"), of_version("4", 2)).numerics, "");
  EXPECT_EQ(diff(of_version("4"), of_version("5")).numerics,
            "left by numerics version 4, right by numerics version 5: canonical bits may differ for that alone");
}

TEST(TraceDiff, SaysThatAVersionIsNotKnownWhereSomethingDiffers) {
  EXPECT_EQ(diff(of_version(nullptr), of_version("5")).numerics, "");
  EXPECT_EQ(diff(of_version(nullptr), of_version("5", 2)).numerics,
            "left by a numerics version that is not known, right by numerics version 5: canonical bits may differ for "
            "that alone");
  EXPECT_EQ(diff(of_version(nullptr), of_version(nullptr, 2)).numerics, "");
}

}  // namespace
}  // namespace lockstep::replay

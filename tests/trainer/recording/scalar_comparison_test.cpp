// A step's numbers against those that were recorded.
#include "trainer/recording/scalar_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace lockstep::trainer {
namespace {

using ::testing::ElementsAre;

replay::StepRecording recorded(std::initializer_list<std::pair<const char*, double>> scalars) {
  replay::StepRecording recording;
  recording.complete = true;
  for (const auto& [name, value] : scalars) recording.scalars.push_back({name, std::bit_cast<uint64_t>(value)});
  return recording;
}

TEST(ScalarComparison, IsRelativeToTheLarger) {
  const StepScalar now[] = {{"loss", 2}, {"gradient_norm", 3}, {"rate", -8}};
  const auto comparison = compare_scalars(recorded({{"loss", 1}, {"gradient_norm", 3}, {"rate", -2}}), now);
  EXPECT_THAT(comparison.different, ElementsAre("loss: recorded 1 (0x3ff0000000000000), now 2 (0x4000000000000000)",
                                                "rate: recorded -2 (0xc000000000000000), now -8 (0xc020000000000000)"));
  EXPECT_THAT(comparison.relative, ElementsAre(0.5, 0.75));
}

TEST(ScalarComparison, NamesAndTheirOrderCount) {
  const StepScalar now[] = {{"gradient_norm", 3}, {"loss", 1}};
  const auto comparison = compare_scalars(recorded({{"loss", 1}, {"gradient_norm", 3}}), now);
  EXPECT_THAT(comparison.different,
              ElementsAre("numbers of the step: recorded loss gradient_norm, now gradient_norm loss"));
  EXPECT_THAT(comparison.relative, ElementsAre(std::numeric_limits<double>::infinity()));
}

TEST(ScalarComparison, OfAStepThatEndedEarlyThereAreNone) {
  auto recording = recorded({{"loss", 1}});
  recording.complete = false;
  EXPECT_TRUE(compare_scalars(recording, {}).agrees());
}

}  // namespace
}  // namespace lockstep::trainer

// The parts of a step: the same moments belong to one of them, none is left out.
#include "replay/view/step_sections.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/view/sample_step.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::SampleStep;
using ::testing::ElementsAre;

std::vector<std::string> sections(const std::vector<StepRecording>& ranks) {
  std::vector<std::string> texts;
  for (const auto& section : sections_of(processes_of(ranks)))
    texts.push_back(fmt::format("{} {}-{}", section.name, section.window.begin, section.window.end));
  return texts;
}

TEST(StepSections, LastUntilTheNextBegins) {
  EXPECT_THAT(sections({SampleStep()
                            .op("mm", 10, 20)
                            .op("mm", 25, 30)
                            .collective(CollectiveKind::kAllGather, "tp", 31, 38, 1)
                            .op("mm", 40, 50, Phase::kBackward)
                            .op("adamw", 60, 70, Phase::kOptimizer)
                            .collective(CollectiveKind::kAllGather, "tp", 71, 88, 1)
                            .recording}),
              ElementsAre("forward 0-40", "backward 40-60", "optimizer 60-88"));
}

TEST(StepSections, OfTheBackwardPassHaveWhatItComputesAgain) {
  EXPECT_THAT(sections({SampleStep()
                            .op("mm", 0, 10)
                            .op("mm", 10, 20, Phase::kBackward)
                            .op("mm", 20, 30, Phase::kRecompute)
                            .op("mm", 30, 40, Phase::kBackward)
                            .recording}),
              ElementsAre("forward 0-10", "backward 10-40"));
}

TEST(StepSections, AreOfMicrobatchesWhereThereAreSome) {
  EXPECT_THAT(sections({SampleStep()
                            .op("mm", 0, 10)
                            .op("mm", 10, 20, Phase::kForward, 0, 1)
                            .op("mm", 20, 30, Phase::kBackward, 0, 1)
                            .recording}),
              ElementsAre("microbatch 0, forward 0-10", "microbatch 1, forward 10-20", "microbatch 1, backward 20-30"));
}

TEST(StepSections, OfProcessesHoldAllOfThem) {
  const auto rank = [](int number, uint64_t shift) {
    return SampleStep(number, 2)
        .op("mm", shift, 50 + shift)
        .op("mm", 50 + shift, 90 + shift, Phase::kBackward)
        .recording;
  };
  EXPECT_THAT(sections({rank(0, 0), rank(1, 7)}), ElementsAre("forward 0-57", "backward 50-97"));
  const auto other = SampleStep(1, 2).op("mm", 500, 900, Phase::kSave).recording;
  EXPECT_THAT(sections({rank(0, 0), other}), ElementsAre("forward 0-50", "backward 50-90"));
  EXPECT_TRUE(sections({}).empty());
}

TEST(Pieces, EndAtRoundTimes) {
  std::vector<std::string> texts;
  for (const auto& piece : pieces_of({119, 351}, 6)) texts.push_back(fmt::format("{}-{}", piece.begin, piece.end));
  EXPECT_THAT(texts, ElementsAre("119-150", "150-200", "200-250", "250-300", "300-350", "350-351"));
  EXPECT_TRUE(pieces_of({7, 7}, 6).empty());
}

}  // namespace
}  // namespace lockstep::replay

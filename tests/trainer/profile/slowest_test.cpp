#include "trainer/profile/slowest.h"

#include <gtest/gtest.h>

#include "tests/replay/view/sample_step.h"

namespace lockstep::trainer {
namespace {

using lockstep::testing::SampleStep;

/// A rank whose ops take `linear` and 5 microseconds, and which then waits until 1000.
replay::TimedStep timed(int rank, uint64_t linear) {
  const uint64_t end = 1'000'000;
  SampleStep step(rank, 3);
  step.op("linear", 0, linear).op("add.Tensor", linear, linear + 5000);
  step.collective(CollectiveKind::kAllReduce, "dp", linear + 5000, end, 64);
  return {step.recording, {end - linear - 5000}};
}

ProcessTime process(int rank, uint64_t linear) { return time_of(std::vector{timed(rank, linear)}); }

TEST(Slowest, AProcessHasItsOwnTimeAndItsSlowestOp) {
  const auto time = process(1, 400'000);
  EXPECT_EQ(time.name, "rank 1");
  EXPECT_EQ(time.length, 1'000'000U);
  EXPECT_EQ(time.own(), 405'000U);
  ASSERT_EQ(time.ops.size(), 1U);
  EXPECT_EQ(time.ops[0].name, "linear");
  EXPECT_EQ(time.ops[0].nanoseconds, 400'000U);
}

/// The others have as long a step, and stand still for most of it.
TEST(Slowest, IsTheRankThatOthersWaitFor) {
  const std::vector<ProcessTime> processes{process(0, 100'000), process(1, 985'000), process(2, 400'000)};
  EXPECT_EQ(slowest_text(processes),
            "slowest rank 1: 990 us of its own, all ranks 500 us in the mean; slowest op linear: 985 us in 1 call on "
            "rank 1");
}

TEST(Slowest, OpsThatRunOthersHaveTheRestAlone) {
  replay::TimedStep step{SampleStep(0, 1).op("outer", 0, 900).op("inner", 100, 800).recording, {}};
  EXPECT_EQ(slowest_text(std::vector{time_of(std::vector{step})}),
            "slowest rank 0: 900 ns of its own; slowest op inner: 700 ns in 1 call on rank 0");
}

TEST(Slowest, GoesToOtherRanksAndComesBack) {
  const auto text = to_text(process(2, 400'000));
  EXPECT_EQ(to_text(process_time_of(text)), text);
  EXPECT_EQ(process_time_of(text).own(), 405'000U);
}

TEST(Slowest, SimulatedRanksAreOneProcess) {
  std::vector<replay::TimedStep> ranks{timed(0, 1000), timed(1, 1000), timed(2, 1000)};
  EXPECT_EQ(time_of(ranks).name, "ranks 0-2");
}

TEST(Slowest, WithoutOpsNamesTheRankAlone) {
  const ProcessTime nothing{"rank 0", 0, 0, {}};
  EXPECT_EQ(slowest_text(std::vector{nothing}), "slowest rank 0: 0 of its own");
}

}  // namespace
}  // namespace lockstep::trainer

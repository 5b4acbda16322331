// Recordings from the command line: made by one process and by many, listed, replayed, compared; and what happens to
// those that are damaged, incomplete, or not there.
#include "tests/tools/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/numerics_version.h"
#include "tests/support/instruction_sets.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What all steps say of their collectives, of what comes next and of the state.
std::vector<std::string> dumped_events(const std::string& traces) {
  std::vector<std::string> lines;
  std::istringstream dump(run_lockstep("trace dump " + traces).out);
  for (std::string line; std::getline(dump, line);)
    for (const char* start : {"  collective ", "  first_sample = ", "  next_", "  state_digest = "})
      if (line.starts_with(start)) lines.push_back(line);
  return lines;
}

TEST_F(Recording, OfOneProcessIsReplayedRankByRank) {
  ASSERT_EQ(train("").code, 0);
  for (const char* rank : {"0", "1"})
    for (const char* step : {"1", "3", "4"}) {
      const auto run = replay(std::string("--rank ") + rank + " --step " + step);
      EXPECT_EQ(run.code, 0) << run.err;
      EXPECT_THAT(run.out, HasSubstr(std::string("rank ") + rank + ", step " + step + ": identical: "));
      EXPECT_EQ(result().at("verdict"), "identical");
      EXPECT_GT(result().at("ops"), 10);
      EXPECT_GT(result().at("collectives"), 2);
      EXPECT_TRUE(result().at("first_difference").is_null());
    }
  EXPECT_EQ(replay("--rank 0 --repeat 3").code, 0);
}

TEST_F(Recording, OfManyProcessesIsThatOfOne) {
  ASSERT_EQ(train("", "launch -n 2 ").code, 0);
  EXPECT_EQ(replay("--rank 1").code, 0);
  const auto many = traces_;
  traces_ = folder_.file("simulated");
  ASSERT_EQ(train("").code, 0);
  const auto diff = run_lockstep("trace diff " + traces_ + " " + many);
  EXPECT_EQ(diff.code, 0) << diff.out;
  EXPECT_THAT(diff.out, AllOf(HasSubstr("rank 1, step 4: "), HasSubstr(" 0 differ")));
  const auto here = dumped_events(traces_), there = dumped_events(many);
  EXPECT_EQ(here, there);
  EXPECT_THAT(here,
              AllOf(Contains(StartsWith("  collective 0 of dp_shard=2: ")), Contains(StartsWith("  next_sample = ")),
                    Contains(StartsWith("  state_digest = ")), Contains(StartsWith("  next_learning_rate = "))));
}

TEST_F(Recording, IsComparedWithOneDevice) {
  ASSERT_EQ(train("").code, 0);
  const auto last = replay("--against reference --step 4");  // of which the state's digest is recorded, too
  EXPECT_EQ(last.code, 0) << last.out << last.err;
  const auto run = replay("--against reference --step 3");
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("as one device: every compared value agrees"));
}

/// It begins with a state that no seed gives.
TEST_F(Recording, OfAResumedRunIsComparedWithOneDevice) {
  const auto saved = " --checkpoint.enable true";
  ASSERT_EQ(run_lockstep("train " + job_ + " -q --training.steps 2 --lr_scheduler.total_steps 4" + saved).code, 0);
  const auto resumed = train("--training.steps 4" + std::string(saved));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  for (const char* step : {"3", "4"}) {
    const auto run = replay(std::string("--against reference --step ") + step);
    EXPECT_EQ(run.code, 0) << run.out << run.err;
    EXPECT_THAT(run.out, HasSubstr("as one device: every compared value agrees"));
  }
}

TEST_F(Recording, OfAnotherJobDiffers) {
  ASSERT_EQ(train("").code, 0);
  const auto run = replay("--rank 0 --step 1 --set training.max_norm=1e-3");
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(result().at("verdict"), "differs");
  EXPECT_THAT(result().at("first_difference").at("op"), HasSubstr("optimizer"));
  EXPECT_THAT(run.out, AllOf(HasSubstr("DIFFERS in"), HasSubstr("mesh::adamw"), HasSubstr("operands")));
  const auto left = traces_;
  traces_ = folder_.file("other");
  ASSERT_EQ(train("--training.max_norm 1e-3").code, 0);
  const auto diff = run_lockstep("trace diff " + left + " " + traces_ + " --step 1 --rank 0");
  EXPECT_EQ(diff.code, 3);
  EXPECT_THAT(diff.out, AllOf(HasSubstr("first: "), HasSubstr("gradient_scale: ")));
}

TEST_F(Recording, ARingIsWrittenOnlyWhenSomethingFails) {
  ASSERT_EQ(train("--record.payload ring:2").code, 0);
  const auto empty = run_lockstep("trace ls " + traces_);
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("no step was written into it"));
  const auto run = train("--record.payload ring:2 --optimizer.lr 1e30 --training.steps 9");
  ASSERT_EQ(run.code, 3) << run.err;
  const auto list = run_lockstep("trace ls " + traces_);
  EXPECT_EQ(list.code, 0) << list.out << list.err;
  EXPECT_THAT(list.out, HasSubstr(" no "));
  EXPECT_THAT(replay("--rank 1").out, AllOf(HasSubstr("identical"), HasSubstr("are not both finite")));
}

TEST_F(Recording, DigestsAloneCannotBeReplayed) {
  ASSERT_EQ(train("--record.payload none").code, 0);
  EXPECT_EQ(run_lockstep("trace diff " + traces_ + " " + traces_).code, 0);
  const auto run = replay("--rank 0");
  EXPECT_EQ(run.code, 5);
  EXPECT_THAT(run.err, HasSubstr("state"));
}

TEST_F(Recording, DamageIsNamedAndTheRestIsRead) {
  ASSERT_EQ(train("--record.state_every 2").code, 0);
  damage("rank0-step2.h5");
  const auto run = replay("--rank 0 --step 2");
  EXPECT_EQ(run.code, 5);
  EXPECT_THAT(run.err, HasSubstr("rank0-step2.h5"));
  EXPECT_EQ(result().at("verdict"), "damaged");
  EXPECT_EQ(replay("--rank 0 --step 1").code, 0);
  EXPECT_EQ(replay("--rank 0 --step 4").code, 0) << "its state is that of step 3";
  EXPECT_EQ(replay("--rank 1 --step 2").code, 0);
  const auto list = run_lockstep("trace ls " + traces_);
  EXPECT_EQ(list.code, 5);
  EXPECT_THAT(list.out, AllOf(HasSubstr("DAMAGED"), HasSubstr("rank0-step2.h5")));
}

TEST_F(Recording, OfCanonicalNumericsIsReplayedOnOtherMachines) {
  ASSERT_EQ(train("").code, 0);
  if (best_instruction_set() == InstructionSet::kBaseline) GTEST_SKIP() << testing::why_not(InstructionSet::kAvx2);
  const auto elsewhere = testing::limited_to(InstructionSet::kBaseline);
  const auto run = run_lockstep("replay " + traces_ + " --rank 1", elsewhere);
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, HasSubstr("identical: "));
  const auto changed = run_lockstep("replay " + traces_ + " --rank 1 --set training.max_norm=1e-3", elsewhere);
  EXPECT_THAT(changed.out, HasSubstr("machine   instruction_set: "));
}

TEST_F(Recording, OfAnotherNumericsVersionSaysSoFirst) {
  ASSERT_EQ(train("").code, 0);
  const auto version = std::to_string(kNumericsVersion), other = std::string(version.size(), '9');
  rewrite("numerics_version = " + version, "numerics_version = " + other);
  const auto run = replay("--rank 0 --step 1");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("recorded by numerics version " + other + ", this is numerics version " + version +
                                 ": canonical bits may differ for that alone\nrank 0, step 1: identical: "));
  EXPECT_THAT(result().at("other_numerics"), HasSubstr("numerics version " + other));
  const auto changed = replay("--rank 0 --step 1 --set training.max_norm=1e-3");
  EXPECT_EQ(changed.code, 3);
  EXPECT_THAT(changed.out, HasSubstr("for that alone\nrank 0, step 1: DIFFERS in "));
  EXPECT_THAT(replay("--against reference --step 1").out,
              HasSubstr("for that alone\nstep 1, all ranks, as one device"));
  rewrite("numerics_version = " + other, "numerics_version = " + std::string(version.size(), 'x'));
  const auto crafted = replay("--rank 0 --step 1");
  EXPECT_EQ(crafted.code, 5);
  EXPECT_THAT(crafted.err, HasSubstr("not a number from 0 to 999999"));
}

TEST_F(Recording, OfNativeNumericsIsWithinBoundOnOtherMachines) {
  ASSERT_EQ(train("--numerics.mode native").code, 0);
  EXPECT_EQ(replay("--rank 1 --step 4").code, 0);
  EXPECT_EQ(result().at("verdict"), "identical");
  if (best_instruction_set() == InstructionSet::kBaseline) GTEST_SKIP() << testing::why_not(InstructionSet::kAvx2);
  const std::string elsewhere = "ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 ";
  const auto run = run_lockstep("replay " + traces_ + " --rank 1 --step 4", elsewhere);
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_THAT(run.out, AllOf(HasSubstr("within bound: "), HasSubstr("machine   libtorch_instruction_set: ")));
  const auto changed = run_lockstep("replay " + traces_ + " --rank 1 --set training.max_norm=1e-3", elsewhere);
  EXPECT_EQ(changed.code, 3) << changed.out;
}

TEST_F(Recording, IsReplayedOnTheDeviceThatIsAskedFor) {
  ASSERT_EQ(train("--numerics.mode native --training.steps 2").code, 0);
  const auto cpu = replay("--rank 1 --device cpu");
  EXPECT_EQ(cpu.code, 0) << cpu.err;
  EXPECT_THAT(cpu.out, HasSubstr("rank 1, step 2: identical: "));
  const auto tpu = replay("--rank 1 --device tpu");
  EXPECT_EQ(tpu.code, 2);
  EXPECT_THAT(tpu.err, AllOf(HasSubstr("--device"), HasSubstr("tpu not in {cpu,cuda}")));
  EXPECT_EQ(replay("--device cpu --against reference").code, 2);
  EXPECT_THAT(run_lockstep("replay --help").out, HasSubstr("--device DEVICE"));
  const auto cuda = replay("--rank 1 --device cuda");
  if (cuda.code == 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(cuda.code, 2);
  EXPECT_THAT(cuda.err, HasSubstr("step 1 of rank 1 cannot be replayed on a GPU here, use --device cpu: "));
  EXPECT_EQ(std::count(cuda.err.begin(), cuda.err.end(), '\n'), 1) << cuda.err;
}

TEST_F(Recording, ACaseMustBeOne) {
  ASSERT_EQ(train("--training.steps 1").code, 0);
  const auto other = run_lockstep("replay --case " + traces_ + "/rank0-step1.h5");
  EXPECT_EQ(other.code, 5);
  EXPECT_THAT(other.err, HasSubstr("rank0-step1.h5 is no case (lockstep verify writes them)"));
  EXPECT_EQ(run_lockstep("replay --case nothing.h5").code, 5);
  EXPECT_EQ(run_lockstep("replay " + traces_ + " --case nothing.h5").code, 2);
  const auto neither = run_lockstep("replay");
  EXPECT_EQ(neither.code, 2);
  EXPECT_THAT(neither.err, HasSubstr("folder is required, or --case"));
}

TEST_F(Recording, WrongQuestionsGetOneLine) {
  ASSERT_EQ(train("").code, 0);
  const auto expect_line = [](const lockstep::Run& run, const char* text) {
    EXPECT_EQ(run.code, 2) << run.err;
    EXPECT_THAT(run.err, HasSubstr(text));
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  };
  expect_line(replay(""), "has ranks 0, 1: say which one with --rank");
  expect_line(replay("--rank 7"), "has no rank 7; it has 0, 1");
  expect_line(replay("--rank 0 --step 99"), "has no step 99 of rank 0; it has 1 to 4 (4 of them)");
  expect_line(run_lockstep("replay /nowhere --rank 0"), "/nowhere");
  expect_line(replay("--rank 0 --set max_norm"), "expected KEY=VALUE");
  expect_line(replay("--rank 0 --set training.max_nrom=1"), "max_norm");
  expect_line(run_lockstep("trace timeline " + traces_), "--html FILE or --chrome FILE");
  expect_line(train("--record.payload rings:3"), "all, none or ring:K");
  expect_line(train("--training.steps 5"), "is of another job");
}

}  // namespace
}  // namespace lockstep

// A recorded collective says what it moved, between whom, and as which one of its step: the same whoever records it,
// and whatever came before the step. What says something else is noticed, though all its bytes are as they were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <tuple>

#include "core/digest/digest.h"
#include "core/error.h"
#include "replay/store/recording_folder.h"
#include "runtime/transport/transport.h"
#include "tests/support/message_of.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/recording/replayed_run.h"
#include "trainer/recording/step_recorder.h"

namespace lockstep::trainer {
namespace {

using replay::RecordedCollective;
using replay::StepRecording;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::StartsWith;

/// Two steps of all ranks on dp_shard=2,tp=2, each with its state.
class RecordedCollectives : public ::testing::Test {
 protected:
  RecordedCollectives() {
    auto job = testing::small_job();
    job.parallelism.data_parallel_shard_degree = job.parallelism.tensor_parallel_degree = 2;
    job.training.local_batch_size = 6;
    job.record.folder = folder_.file("traces");
    job.record.state_every = 1;
    TrainingRun::Options options;
    options.mesh = mesh_of(job);
    options.make_model = testing::small_llama;
    options.as_messages = true;
    TrainingRun run(job, options);
    StepRecorder recorder(job, run);
    for (int64_t step = 1; step <= 2; ++step) {
      run.step(step, testing::batch_for(job, step), 1e-2);
      if (step == 2) recorder.note_state(digest("the state"));
      recorder.close_step();
    }
    recorder.finish();
  }

  StepRecording read(int rank, int64_t step) const {
    return replay::RecordingFolder(folder_.file("traces")).read(rank, step);
  }
  static ReplayOutcome replayed(const StepRecording& recording) {
    return ReplayedRun(recording, {}, testing::small_llama).replay(recording);
  }
  static replay::Deviation deviation_of(const StepRecording& recording) {
    const auto outcome = replayed(recording);
    EXPECT_FALSE(outcome.is_identical());
    EXPECT_EQ(outcome.collectives, recording.collectives.size()) << "the replay goes on";
    return outcome.first_difference.value_or(replay::Deviation{});
  }

  TemporaryFolder folder_;
};

/// Whatever of it can be the same on several ranks.
auto event_of(const StepRecording& r, const RecordedCollective& c) {
  return std::tuple(c.number, r.names[c.mesh], r.names[c.axis], c.kind, c.dtype, c.purpose);
}

TEST_F(RecordedCollectives, AreCountedFromTheStepsBeginning) {
  for (const int64_t step : {1, 2}) {
    const auto recording = read(0, step);
    ASSERT_GT(recording.collectives.size(), 10U);
    for (uint64_t c = 0; c < recording.collectives.size(); ++c) EXPECT_EQ(recording.collectives[c].number, c);
    EXPECT_TRUE(replayed(recording).is_identical()) << "in a run that begins with step " << step;
  }
}

TEST_F(RecordedCollectives, SayTheSameOnAllRanks) {
  const auto first = read(0, 1);
  for (const int rank : {1, 2, 3}) {
    const auto other = read(rank, 1);
    ASSERT_EQ(other.collectives.size(), first.collectives.size());
    for (size_t c = 0; c < first.collectives.size(); ++c)
      EXPECT_EQ(event_of(other, other.collectives[c]), event_of(first, first.collectives[c])) << c;
  }
}

TEST_F(RecordedCollectives, NameTheRanksThatTakePart) {
  const auto recording = read(3, 1);
  for (const auto& collective : recording.collectives) {
    const bool is_tp = recording.names[collective.axis] == "tp";
    const std::vector<int> ranks{is_tp ? 2 : 1, 3};
    EXPECT_EQ(collective.group, group_digest(ranks));
    EXPECT_NE(collective.purpose, 0U);
  }
}

/// Whether nothing but the purpose tells them apart.
bool are_alike(const StepRecording& r, const RecordedCollective& a, const RecordedCollective& b) {
  const auto key = [](const auto& c) { return std::tuple(c.mesh, c.axis, c.kind, c.dtype, c.group, c.pieces); };
  const auto* const pieces = r.pieces.data();
  return key(a) == key(b) &&
         std::equal(pieces + a.first_piece, pieces + a.first_piece + a.pieces, pieces + b.first_piece,
                    [](const auto& left, const auto& right) { return left.bytes == right.bytes; });
}

TEST_F(RecordedCollectives, OfAnotherTensorOfTheSameSizesAreNoticed) {
  auto recording = read(0, 1);
  auto& all = recording.collectives;
  for (auto a = all.begin(); a != all.end(); ++a)
    for (auto b = a + 1; b != all.end(); ++b) {
      if (a->purpose == b->purpose || !are_alike(recording, *a, *b)) continue;
      const auto before = fmt::format("purpose {:08x}", a->purpose), after = fmt::format("purpose {:08x}", b->purpose);
      std::swap(a->purpose, b->purpose);
      const auto deviation = deviation_of(recording);
      EXPECT_THAT(deviation.what, HasSubstr(" of dp_shard=2,tp=2 has another purpose"));
      EXPECT_THAT(deviation.id, StartsWith("step 1, microbatch 0, "));
      EXPECT_EQ(deviation.expected, after);
      EXPECT_EQ(deviation.found, before);
      return;
    }
  FAIL() << "no two collectives are alike";
}

TEST_F(RecordedCollectives, BetweenOtherRanksAreNoticed) {
  auto recording = read(0, 1);
  auto& all = recording.collectives;
  const auto other = std::find_if(all.begin(), all.end(), [&](const auto& c) { return c.group != all[0].group; });
  ASSERT_NE(other, all.end());
  const auto before = fmt::format("group {:016x}", all[0].group), after = fmt::format("group {:016x}", other->group);
  std::swap(all[0].group, other->group);
  const auto deviation = deviation_of(recording);
  EXPECT_THAT(deviation.what, HasSubstr(" has another group"));
  EXPECT_EQ(deviation.expected, after);
  EXPECT_EQ(deviation.found, before);
}

TEST_F(RecordedCollectives, OfAnotherPlaceInTheStepAreNoticed) {
  auto recording = read(0, 1);
  std::swap(recording.collectives[3].number, recording.collectives[7].number);
  const auto deviation = deviation_of(recording);
  EXPECT_THAT(deviation.what, HasSubstr(" has another number"));
  EXPECT_EQ(deviation.expected, "number 7");
  EXPECT_EQ(deviation.found, "number 3");
}

TEST_F(RecordedCollectives, WhatComesNextIsRecorded) {
  const auto first = read(0, 1), second = read(0, 2);
  EXPECT_EQ(first.next_sample, 12);
  EXPECT_EQ(second.first_sample, 12);
  EXPECT_EQ(second.next_sample, 24);
  const LearningRateSchedule schedule(testing::small_job());
  ASSERT_EQ(second.scalars.back().name, "next_learning_rate");
  EXPECT_EQ(second.scalars.back().bits, std::bit_cast<uint64_t>(schedule.learning_rate(3)));
  EXPECT_EQ(first.state_digest, "");
  EXPECT_EQ(second.state_digest, digest("the state").text());
}

TEST_F(RecordedCollectives, AStepAfterLostSamplesIsRefused) {
  const auto first = read(0, 1);
  auto second = read(0, 2);
  second.first_sample += 12;
  second.next_sample += 12;
  ReplayedRun run(first, {}, testing::small_llama);
  EXPECT_TRUE(run.replay(first).is_identical());
  EXPECT_EQ(message_of<FileError>([&] { run.replay(second); }),
            "step 2 of rank 0 starts with sample 24, the step before it ended at 12");
}

}  // namespace
}  // namespace lockstep::trainer

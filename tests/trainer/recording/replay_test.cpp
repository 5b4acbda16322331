// One rank's step, replayed alone from its recording, gives the recorded bits: for every rank, on meshes of one to
// four axes, with dropout, recomputation and several microbatches. What is changed in a recording is noticed, and
// blamed.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/numerics_version.h"
#include "replay/format/recorded_numerics.h"
#include "replay/format/validate.h"
#include "replay/store/recording_folder.h"
#include "replay/view/trace_diff.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/recording/recorded_jobs.h"
#include "trainer/recording/local_state.h"
#include "trainer/recording/machine_facts.h"
#include "trainer/recording/replayed_run.h"
#include "trainer/recording/step_recorder.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using testing::job_of;
using testing::options_of;
using testing::Setup;
using testing::text_of;

/// Records three steps; gives each rank's part of the state after them.
std::vector<std::vector<replay::RecordedTensor>> record(const Job& job) {
  TrainingRun run(job, options_of(job));
  StepRecorder recorder(job, run);
  for (int64_t step = 1; step <= 3; ++step) {
    run.step(step, testing::recorded_batch(job, step), 1e-2);
    recorder.close_step();
  }
  recorder.finish();
  std::vector<std::vector<replay::RecordedTensor>> states;
  for (size_t i = 0; i < run.mesh().local_count(); ++i) states.push_back(local_state(run.state(), i));
  return states;
}

void expect_equal(const std::vector<replay::RecordedTensor>& left, const std::vector<replay::RecordedTensor>& right) {
  ASSERT_EQ(left.size(), right.size());
  for (size_t t = 0; t < left.size(); ++t) EXPECT_TRUE(left[t].bytes == right[t].bytes) << left[t].name;
}

class Replay : public ::testing::TestWithParam<Setup> {};

TEST_P(Replay, OfEveryRankAloneIsIdentical) {
  const TemporaryFolder folder;
  const auto job = job_of(GetParam(), folder.file("traces"));
  const auto states = record(job);
  const replay::RecordingFolder traces(job.record.folder);
  ASSERT_EQ(traces.ranks().size(), states.size());
  for (const int rank : traces.ranks()) {
    auto recording = traces.read(rank, 1);
    ReplayedRun run(recording, {}, testing::small_llama);
    for (int64_t step = 1; step <= 3; ++step) {
      if (step > 1) recording = traces.read(rank, step);
      EXPECT_EQ(recording.has_state, step != 2);
      const auto outcome = run.replay(recording);
      EXPECT_TRUE(outcome.is_identical()) << "rank " << rank << ", step " << step << "\n" << text_of(outcome);
      EXPECT_EQ(outcome.ops, recording.ops.size());
      EXPECT_EQ(outcome.collectives, recording.collectives.size());
      EXPECT_EQ(outcome.stopped_by, "");
    }
    expect_equal(local_state(run.state(), 0), states[static_cast<size_t>(rank)]);
  }
}

INSTANTIATE_TEST_SUITE_P(Setups, Replay,
                         ::testing::Values(Setup{"dp_shard=2"}, Setup{"tp=3"}, Setup{"dp_shard=2,tp=2"},
                                           Setup{"dp_replicate=2,dp_shard=2,tp=3"}, Setup{"dp_shard=2", "native"},
                                           Setup{"tp=2", "native", 2}, Setup{"dp_shard=2,tp=3", "canonical", 2, true},
                                           Setup{"dp_replicate=2,dp_shard=2", "native", 1, true},
                                           Setup{"dp_shard=2,tp=2", "canonical", 2, false, "bfloat16"}, Setup{"cp=2"},
                                           Setup{"dp_shard=2,cp=3", "native", 2},
                                           Setup{"dp_replicate=2,dp_shard=2,cp=2,tp=2", "canonical", 1, true},
                                           Setup{"dp_replicate=2,dp_shard=2,cp=2,tp=2", "native", 2, true},
                                           Setup{"pp=2"}, Setup{"pp=3,tp=2", "native", 2},
                                           Setup{"pp=2,dp_shard=2", "canonical", 2},
                                           Setup{"pp=2,dp_replicate=2", "canonical", 2, true, "bfloat16"},
                                           Setup{"cp=2,tp=2", "canonical", 1, false, "float32", true},
                                           Setup{"pp=2,dp_shard=2", "native", 2, true, "float32", true}));

/// The first step of rank 0 on dp_shard=2,tp=2.
class ChangedRecording : public ::testing::Test {
 protected:
  ChangedRecording() {
    const auto job = job_of({"dp_shard=2,tp=2"}, folder_.file("traces"));
    record(job);
    recording_ = replay::RecordingFolder(job.record.folder).read(0, 1);
  }
  std::string& fact(std::string_view key) {
    return std::find_if(recording_.machine.begin(), recording_.machine.end(),
                        [&](const auto& entry) { return entry.first == key; })
        ->second;
  }
  ReplayOutcome replayed() const { return ReplayedRun(recording_, {}, testing::small_llama).replay(recording_); }

  TemporaryFolder folder_;
  replay::StepRecording recording_;
};

TEST_F(ChangedRecording, OfAnotherNumericsVersionSaysSo) {
  EXPECT_EQ(replayed().other_numerics, "");
  auto& version = fact(replay::kNumericsFact);
  EXPECT_EQ(version, std::to_string(kNumericsVersion));
  version = "0";
  const auto outcome = replayed();
  EXPECT_TRUE(outcome.is_identical());
  EXPECT_EQ(outcome.other_numerics,
            fmt::format("recorded by numerics version 0, this is numerics version {}: canonical bits may differ for "
                        "that alone",
                        kNumericsVersion));
  Job native;
  native.numerics.mode = "native";
  EXPECT_EQ(numerics_difference(recording_, native, true), "") << "its numbers are LibTorch's";
}

TEST_F(ChangedRecording, OfANumericsVersionThatIsNotKnownSaysSoWhereBitsDiffer) {
  std::erase_if(recording_.machine, [](const auto& entry) { return entry.first == replay::kNumericsFact; });
  EXPECT_EQ(replayed().other_numerics, "");
  for (auto& scalar : recording_.scalars)
    if (scalar.name == "loss") scalar.bits ^= 1;
  EXPECT_THAT(replayed().other_numerics, HasSubstr("recorded by a numerics version that is not known, this is"));
}

TEST_F(ChangedRecording, OneBitOfAPayloadIsBlamedOnTheOpThatUsesIt) {
  const auto piece =
      std::find_if(recording_.pieces.begin() + 20, recording_.pieces.end(), [](const auto& p) { return p.bytes > 0; });
  ASSERT_NE(piece, recording_.pieces.end());
  recording_.payload[piece->offset] ^= std::byte{1};
  const auto outcome = replayed();
  ASSERT_TRUE(outcome.first_difference);
  EXPECT_THAT(outcome.first_difference->what, HasSubstr("was not delivered as it is here"));
}

TEST_F(ChangedRecording, AnotherStateIsBlamedOnTheFirstOpThatReadsIt) {
  for (auto& tensor : recording_.state)
    if (tensor.name == "tok_embeddings.weight") tensor.bytes[0] ^= std::byte{1};
  const auto outcome = replayed();
  ASSERT_TRUE(outcome.first_difference);
  EXPECT_THAT(outcome.first_difference->id, HasSubstr("step 1, microbatch 0, forward, tok_embeddings"));
  EXPECT_GT(outcome.differing_results, 1U);
}

TEST_F(ChangedRecording, AnotherOpIsNamed) {
  recording_.ops[10].id.occurrence = 99;
  const auto outcome = replayed();
  ASSERT_TRUE(outcome.first_difference);
  EXPECT_THAT(outcome.first_difference->what, HasSubstr("another op"));
  EXPECT_THAT(outcome.first_difference->expected, HasSubstr("#99"));
  EXPECT_EQ(outcome.ops, 10U);
}

TEST_F(ChangedRecording, AnotherCollectiveIsNamed) {
  recording_.collectives[3].kind = static_cast<uint8_t>(CollectiveKind::kAllToAll);
  const auto outcome = replayed();
  ASSERT_TRUE(outcome.first_difference);
  EXPECT_THAT(outcome.first_difference->what, HasSubstr("another collective"));
  EXPECT_THAT(outcome.first_difference->expected, HasSubstr("all_to_all"));
}

TEST_F(ChangedRecording, AMissingEndIsNoIdentity) {
  recording_.ops.push_back(recording_.ops.back());
  const auto outcome = replayed();
  EXPECT_FALSE(outcome.is_identical());
  EXPECT_THAT(text_of(outcome), HasSubstr("ended before its recording"));
}

TEST_F(ChangedRecording, AnotherLossIsNamed) {
  for (auto& scalar : recording_.scalars)
    if (scalar.name == "loss") scalar.bits ^= 1;
  const auto outcome = replayed();
  ASSERT_EQ(outcome.differing_scalars.size(), 1U);
  EXPECT_THAT(outcome.differing_scalars[0], HasSubstr("loss: recorded"));
  EXPECT_FALSE(outcome.is_identical());
}

TEST_F(ChangedRecording, TheReplayStopsWhereItIsTold) {
  const auto outcome = ReplayedRun(recording_, {}, testing::small_llama).replay(recording_, "layers.1.ffn_norm");
  EXPECT_TRUE(outcome.stopped_there);
  EXPECT_TRUE(outcome.is_identical());
  EXPECT_LT(outcome.ops, recording_.ops.size() / 2);
}

TEST_F(ChangedRecording, AnotherJobIsAnotherStep) {
  const std::vector changes{command_line_setting("training.max_norm", "0.001")};
  const auto outcome = ReplayedRun(recording_, changes, testing::small_llama).replay(recording_);
  ASSERT_TRUE(outcome.first_difference);
  EXPECT_THAT(outcome.first_difference->id, HasSubstr("optimizer"));
  EXPECT_THAT(outcome.differing_scalars, ::testing::Contains(HasSubstr("gradient_scale")));
}

TEST_F(ChangedRecording, WithoutPayloadsNothingCanBeReplayed) {
  for (auto& piece : recording_.pieces) piece.offset = replay::kNoPayload;
  EXPECT_THROW(replayed(), BadInput);
}

TEST_F(ChangedRecording, AMissingPieceIsNoIdentity) {
  recording_.collectives[3].pieces = 0;
  const auto outcome = replayed();
  EXPECT_THAT(text_of(outcome), HasSubstr("waits for bytes that were not recorded"));
  EXPECT_FALSE(outcome.is_identical());
}

TEST_F(ChangedRecording, APieceTooManyIsNoIdentity) {
  ++recording_.collectives[3].pieces;
  const auto outcome = replayed();
  ASSERT_TRUE(outcome.first_difference);
  EXPECT_EQ(outcome.first_difference->what, "1 pieces are recorded that do not arrive");
  const auto& collective = recording_.collectives[3];
  EXPECT_EQ(outcome.first_difference->id, "step 1, " + replay::text_of(collective.id, recording_));
  EXPECT_EQ(outcome.first_difference->expected, fmt::format("{} pieces", collective.pieces));
  EXPECT_FALSE(outcome.is_identical());
}

/// Recorded of packed samples, replayed as if each were one document.
TEST(ReplayOfDocuments, NoticesOtherBorders) {
  const TemporaryFolder folder;
  const auto job = job_of({.mesh = "dp_shard=2", .packs = true}, folder.file("traces"));
  record(job);
  auto recording = replay::RecordingFolder(job.record.folder).read(0, 1);
  ASSERT_EQ(recording.positions.size(), recording.tokens.size());
  for (size_t i = 0; i < recording.positions.size(); ++i)
    recording.positions[i] = static_cast<int32_t>(i % static_cast<size_t>(recording.seq_len));
  const auto outcome = ReplayedRun(recording, {}, testing::small_llama).replay(recording);
  EXPECT_THAT(text_of(outcome), HasSubstr("forward, embedding #0\n"));
  recording.positions[1] = 2;
  EXPECT_EQ(testing::message_of<BadInput>([&] { replay::validate(recording); }), "/batch/positions has 2 at [0, 1]");
}

TEST_F(ChangedRecording, OfWordsThatTheModelDoesNotKnowSaysWhere) {
  const auto at = static_cast<size_t>(recording_.seq_len) + 2;
  recording_.tokens[at] = 99;
  EXPECT_EQ(testing::message_of<FileError>([&] { replayed(); }),
            "the recording of step 1 has the token 99 at [1, 2]; the model knows 0 to 28");
}

TEST_F(ChangedRecording, AStateThatDoesNotFitIsRefused) {
  recording_.state[2].sizes[0] += 1;
  EXPECT_THROW(replayed(), FileError);
  recording_.state.clear();
  recording_.has_state = false;
  EXPECT_THROW(replayed(), FileError);
}

}  // namespace
}  // namespace lockstep::trainer

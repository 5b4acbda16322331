#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "replay/store/recording_folder.h"
#include "replay/store/recording_writer.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::add_payload;
using lockstep::testing::kJobText;
using lockstep::testing::message_of;
using lockstep::testing::record;
using lockstep::testing::step_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StepRecording large_step(int64_t step, std::size_t bytes) {
  auto recording = step_of(step, false);
  add_payload(recording, bytes);
  return recording;
}

TEST(RecordingWriter, CountsWhatWaits) {
  const auto bytes_of = [](const std::function<void(StepRecording&)>& fill) {
    StepRecording recording;
    fill(recording);
    return memory_of(recording);
  };
  EXPECT_EQ(bytes_of([](auto&) {}), 0u);
  EXPECT_EQ(bytes_of([](auto& r) { r.payload.resize(7); }), 7u);
  EXPECT_EQ(bytes_of([](auto& r) { r.tokens.resize(2), r.labels.resize(3); }), 20u);
  EXPECT_EQ(bytes_of([](auto& r) { r.ops.resize(5); }), 5 * sizeof(RecordedOp));
  EXPECT_EQ(bytes_of([](auto& r) { r.results.resize(5); }), 5 * sizeof(RecordedResult));
  EXPECT_EQ(bytes_of([](auto& r) { r.collectives.resize(5); }), 5 * sizeof(RecordedCollective));
  EXPECT_EQ(bytes_of([](auto& r) { r.pieces.resize(5); }), 5 * sizeof(RecordedPiece));
  EXPECT_EQ(bytes_of([](auto& r) { r.names = {"add", "mm"}; }), 5u);
  EXPECT_EQ(bytes_of([](auto& r) { r.state.resize(2), r.state[1].bytes.resize(9); }), 9u);
}

TEST(RecordingWriter, AcknowledgesInOrder) {
  const TemporaryFolder folder;
  RecordingWriter writer(folder.path() + "/new/folder", 0);
  EXPECT_EQ(writer.acknowledged(), -1);
  writer.finish();
  for (int64_t step = 0; step < 5; ++step) {
    writer.push(step_of(step, step == 0));
    EXPECT_GE(writer.acknowledged(), step - 2);
    if (step % 2 == 0) continue;
    writer.finish();
    EXPECT_EQ(writer.acknowledged(), step);
  }
  writer.finish();
  EXPECT_EQ(writer.acknowledged(), 4);
}

TEST(RecordingWriter, OpensAnIndexBeforeTheFirstStep) {
  const TemporaryFolder folder;
  record(folder.path(), {step_of(1, true)});
  RecordingWriter writer(folder.path(), 100);
  EXPECT_THAT(message_of<BadInput>([&] { writer.open(3, 200, "[model]\n"); }), HasSubstr("is of another job"));
  writer.open(3, 200, kJobText);
  writer.push(step_of(2, true));
  writer.finish();
  EXPECT_EQ(writer.acknowledged(), 2);
}

TEST(RecordingWriter, TakesSeveralRanks) {
  const TemporaryFolder folder;
  auto other = step_of(1, true);
  other.rank = 0;
  record(folder.path(), {step_of(1, true), other});
  const RecordingFolder recording(folder.path());
  EXPECT_THAT(recording.ranks(), ElementsAre(0, 3));
  EXPECT_TRUE(recording.read(0, 1) == other);
}

TEST(RecordingWriter, EndingItWritesWhatWaits) {
  const TemporaryFolder folder;
  {
    RecordingWriter writer(folder.path(), std::size_t{1} << 30);
    for (int64_t step = 0; step < 4; ++step) writer.push(large_step(step, 1 << 20));
  }
  EXPECT_THAT(RecordingFolder(folder.path()).steps(3), ElementsAre(0, 1, 2, 3));
}

TEST(RecordingWriter, PushWaitsWhileTooMuchWaits) {
  const TemporaryFolder folder;
  RecordingWriter writer(folder.path(), 100);
  for (int64_t step = 0; step < 6; ++step) {
    writer.push(large_step(step, 1 << 20));
    EXPECT_GE(writer.acknowledged(), step - 1);  // all before the one that may wait
  }
  writer.finish();
}

TEST(RecordingWriter, AFullDiskIsThrownByEveryPushAndFinishAfterIt) {
  const TemporaryFolder folder;
  record(folder.path(), {step_of(1, true)});
  const auto expected = folder.file("rank3-step2.h5") + " cannot be written: File too large";
  {
    const FileSizeLimit limit(100'000);
    RecordingWriter writer(folder.path(), 100);
    writer.push(large_step(2, 1 << 20));
    EXPECT_EQ(message_of<FileError>([&] { writer.finish(); }), expected);
    EXPECT_EQ(message_of<FileError>([&] { writer.push(step_of(3, true)); }), expected);
    EXPECT_EQ(writer.acknowledged(), -1);
  }
  const RecordingFolder recording(folder.path());
  EXPECT_THAT(recording.steps(3), ElementsAre(1));
  EXPECT_THAT(recording.damage(), IsEmpty());
  EXPECT_THAT(recording.leftovers(), IsEmpty());
}

TEST(RecordingWriter, AFullDiskUnderTheIndexLeavesItAsItWas) {
  const TemporaryFolder folder;
  const auto entry = [](int64_t step) {
    return IndexEntry{3, 4, {}, step, true, true, 10, {}, step_file_name(3, step)};
  };
  IndexAppender index(folder.path(), 3, 4, {});
  index.append(entry(1));
  const auto before = file_content(folder.file("rank3.index"));
  {
    const FileSizeLimit limit(before.size() + 20);  // room for a part of the line
    EXPECT_EQ(message_of<FileError>([&] { index.append(entry(2)); }),
              folder.file("rank3.index") + " cannot be written: File too large");
  }
  EXPECT_EQ(file_content(folder.file("rank3.index")), before);
  index.append(entry(3));
  EXPECT_EQ(file_content(folder.file("rank3.index")), before + index_line(entry(3)));
}

TEST(RecordingWriter, AFolderThatCannotBeMadeIsNamed) {
  EXPECT_EQ(message_of<FileError>([] { RecordingWriter("/proc/none", 100); }),
            "/proc/none cannot be created: No such file or directory");
}

TEST(RecordingWriter, ARecordingThatContradictsItselfIsRefused) {
  const TemporaryFolder folder;
  auto wrong = step_of(1, true);
  wrong.ops.push_back({{1, 0, 1'000'000, 0, 0}, 0, 0});
  EXPECT_THAT(message_of<BadInput>([&] { record(folder.path(), {wrong}); }), HasSubstr("name 1000000 of"));
}

}  // namespace
}  // namespace lockstep::replay

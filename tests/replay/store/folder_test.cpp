#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "replay/store/recording_folder.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::kJobText;
using lockstep::testing::message_of;
using lockstep::testing::record;
using lockstep::testing::step_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void flip_byte(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 4));
}

/// Steps 7 (with a state), 8 and 9, recorded.
class RecordingFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { record(folder_.path(), {step_of(7, true), step_of(8, false), step_of(9, false)}); }

  std::string file(const std::string& name) const { return folder_.file(name); }
  RecordingFolder open() const { return RecordingFolder(folder_.path()); }

  /// What reading step 8 says, and damage() too; the other steps can be read.
  std::string damage_of_step_8() const {
    const auto recording = open();
    EXPECT_TRUE(recording.read(3, 7) == step_of(7, true));
    EXPECT_TRUE(recording.read(3, 9) == step_of(9, false));
    auto message = message_of<FileError>([&] { recording.read(3, 8); });
    EXPECT_THAT(recording.damage(), ElementsAre(message + ": step 8 of rank 3 is lost"));
    return message;
  }

  TemporaryFolder folder_;
};

TEST_F(RecordingFolderTest, StepsComeBackAsTheyWerePushed) {
  const auto recording = open();
  EXPECT_THAT(recording.ranks(), ElementsAre(3));
  EXPECT_THAT(recording.steps(3), ElementsAre(7, 8, 9));
  EXPECT_THAT(recording.steps(4), IsEmpty());
  for (const auto step : recording.steps(3)) EXPECT_TRUE(recording.read(3, step) == step_of(step, step == 7));
  EXPECT_THAT(recording.damage(), IsEmpty());
  EXPECT_THAT(recording.leftovers(), IsEmpty());
}

TEST_F(RecordingFolderTest, AStepRecordedAgainCountsAndTheOldFileStays) {
  record(folder_.path(), {step_of(7, true, 50)});
  const auto recording = open();
  EXPECT_EQ(recording.entry(3, 7).file, "rank3-step7.2.h5");
  EXPECT_TRUE(recording.read(3, 7) == step_of(7, true, 50));
  EXPECT_TRUE(std::filesystem::exists(file("rank3-step7.h5")));
  EXPECT_THAT(recording.leftovers(), IsEmpty());
}

TEST_F(RecordingFolderTest, AReplayBeginsAtTheLastState) {
  EXPECT_EQ(open().first_with_state(3, 7), 7);
  EXPECT_EQ(open().first_with_state(3, 9), 7);
  auto ended = step_of(12, false);
  ended.complete = false;
  record(folder_.path(), {step_of(11, false), ended, step_of(13, false), step_of(14, true)});
  EXPECT_EQ(message_of<FileError>([&] { open().first_with_state(3, 11); }),
            folder_.path() +
                ": step 11 of rank 3 cannot be replayed: step 10 is not recorded, and no step from 11 on has "
                "a state");
  EXPECT_EQ(message_of<FileError>([&] { open().first_with_state(3, 13); }),
            folder_.path() +
                ": step 13 of rank 3 cannot be replayed: step 12 ended early, and no step from 13 on has a "
                "state");
  EXPECT_EQ(open().first_with_state(3, 14), 14);
}

TEST_F(RecordingFolderTest, WhatIsNotThereIsBadInput) {
  EXPECT_EQ(message_of<BadInput>([&] { open().read(3, 10); }),
            folder_.path() + " has no step 10 of rank 3; it has 3 between 7 and 9");
  EXPECT_EQ(message_of<BadInput>([&] { open().read(1, 7); }), folder_.path() + " has no rank 1, only 3");
  EXPECT_EQ(message_of<BadInput>([&] { RecordingFolder("/nonexistent"); }),
            "/nonexistent is no recording: No such file or directory");
  EXPECT_EQ(message_of<BadInput>([&] { RecordingFolder("/proc/self/task"); }),
            "/proc/self/task is no recording: no rank*.index in it");
}

TEST_F(RecordingFolderTest, AnotherJobOrWorldIsRefused) {
  auto other = step_of(8, true);
  other.job = "[model]\n";
  EXPECT_EQ(message_of<BadInput>([&] { record(folder_.path(), {other}); }),
            file("rank3.index") + " is of another job (digest " + digest(kJobText).text() + ", this one's is " +
                digest(other.job).text() + "). Record into another folder.");
  other = step_of(8, true);
  other.world = 199;
  EXPECT_EQ(message_of<BadInput>([&] { record(folder_.path(), {other}); }),
            file("rank3.index") + " is of 200 ranks, this run has 199. Record into another folder.");
}

TEST_F(RecordingFolderTest, TwoRunsAtOnceAreRefused) {
  RecordingWriter writer(folder_.path(), 1 << 20);
  writer.push(step_of(10, false));
  EXPECT_EQ(message_of<BadInput>([&] { record(folder_.path(), {step_of(11, false)}); }),
            file("rank3.index") + " is being written by another run. Record into another folder.");
}

TEST_F(RecordingFolderTest, AFlippedBitIsNamed) {
  flip_byte(file("rank3-step8.h5"), 3000);
  EXPECT_EQ(damage_of_step_8(), file("rank3-step8.h5") + " is damaged: its bytes do not match their digest");
}

TEST_F(RecordingFolderTest, ATruncatedFileIsNamed) {
  const auto path = file("rank3-step8.h5");
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, 1000);
  EXPECT_EQ(damage_of_step_8(), path + " is damaged: 1000 bytes, " + std::to_string(size) + " were written");
}

TEST_F(RecordingFolderTest, AMissingFileIsNamed) {
  std::filesystem::remove(file("rank3-step8.h5"));
  EXPECT_EQ(damage_of_step_8(), file("rank3-step8.h5") + ": cannot be opened: No such file or directory.");
}

TEST_F(RecordingFolderTest, APipeInItsPlaceIsNotWaitedFor) {
  for (const auto* name : {"rank3-step8.h5", "rank0.index"}) {
    std::filesystem::remove(file(name));
    ASSERT_EQ(::mkfifo(file(name).c_str(), 0666), 0);
  }
  EXPECT_EQ(message_of<FileError>([&] { open().read(3, 8); }), file("rank3-step8.h5") + ": is not a regular file.");
  EXPECT_EQ(open().damage().front(), file("rank0.index") + " is no file: all steps of rank 0 are lost");
}

TEST_F(RecordingFolderTest, AFileOfAnotherStepIsNamed) {
  const auto index = file_content(file("rank3.index"));
  const auto second = index.find('\n') + 1, third = index.find('\n', second) + 1;
  auto line = parse_index_line(index.substr(second, third - second - 1));
  std::filesystem::copy_file(file("rank3-step9.h5"), file("rank3-step8.2.h5"));
  const auto bytes = file_content(file("rank3-step9.h5"));
  line.file = "rank3-step8.2.h5";
  line.bytes = bytes.size();
  line.digest = digest(bytes);
  folder_.write("rank3.index", index + index_line(line));
  EXPECT_EQ(message_of<FileError>([&] { open().read(3, 8); }),
            file("rank3-step8.2.h5") + " is not the step that the index says");
}

TEST_F(RecordingFolderTest, ADamagedLineIsNamedAndTheOthersRead) {
  const auto index = file_content(file("rank3.index"));
  flip_byte(file("rank3.index"), static_cast<std::streamoff>(index.find('\n') + 30));
  const auto recording = open();
  EXPECT_THAT(recording.steps(3), ElementsAre(7, 9));
  EXPECT_THAT(recording.damage(),
              ElementsAre(file("rank3.index") + ":2: a step is lost, its line is damaged: its check "
                                                "does not match"));
  EXPECT_THAT(recording.leftovers(), ElementsAre(file("rank3-step8.h5") + ": of no acknowledged step"));
  EXPECT_THAT(message_of<FileError>([&] { recording.first_with_state(3, 9); }), HasSubstr("step 8 is not recorded"));
}

TEST_F(RecordingFolderTest, EveryTornLineIsIgnoredAndCutOff) {
  const auto index = file_content(file("rank3.index"));
  const auto last = index.rfind('\n', index.size() - 2) + 1;
  for (auto size = last; size < index.size(); size += 37) {
    folder_.write("rank3.index", index.substr(0, size));
    EXPECT_THAT(open().steps(3), ElementsAre(7, 8)) << size;
    EXPECT_THAT(open().damage(), IsEmpty()) << size;
    EXPECT_EQ(open().leftovers()[0].find("bytes of a line") != std::string::npos, size != last) << size;
    record(folder_.path(), {step_of(9, false)});
    EXPECT_THAT(open().steps(3), ElementsAre(7, 8, 9)) << size;
    EXPECT_THAT(open().damage(), IsEmpty()) << size;
  }
}

TEST_F(RecordingFolderTest, WhatACrashLeavesIsNamed) {
  folder_.write("rank3-step10.h5", "x");
  folder_.write("rank3-step10.h5.partial-77", "x");
  folder_.write("notes.txt", "of the user");
  EXPECT_THAT(open().leftovers(), ElementsAre(file("rank3-step10.h5") + ": of no acknowledged step",
                                              file("rank3-step10.h5.partial-77") + ": of no acknowledged step"));
  EXPECT_THAT(open().damage(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::replay

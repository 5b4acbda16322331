// Folders of checkpoints: what they are called, what is found in them, and what goes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/checkpoint/checkpoint_names.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::message_of;
using ::testing::UnorderedElementsAre;

constexpr const char* kData = "data-0000-00000-0000.safetensors";

class CheckpointFolder : public ::testing::Test {
 protected:
  std::string root() const { return folder_.path(); }
  std::string path(int64_t step) const { return checkpoint_path(root(), step); }

  /// A checkpoint of one tensor.
  void save(int64_t step, const RunOrigin& origin = {}) const {
    const std::byte value{7};
    const ChunkToSave chunk{"w", "U8", {1}, Box::whole({1}), {&value, 1}};
    save_checkpoint(path(step), {step, 8 * step, "", 1, origin}, {&chunk, 1});
  }
  void write(int64_t step, const std::string& name) const {
    fs::create_directories(path(step));
    folder_.write(step_folder_name(step) + "/" + name, "x");
  }
  std::vector<std::string> names(const std::string& inside = "") const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.file(inside)))
      names.push_back(entry.path().filename().string());
    return names;
  }

  TemporaryFolder folder_;
};

TEST(CheckpointNames, StepsAreReadAsTheyAreWritten) {
  EXPECT_EQ(step_of_folder(step_folder_name(0)), 0);
  EXPECT_EQ(step_of_folder("step-123456"), 123456);
  for (const auto* name : {"", "step-", "step-01", "step--1", "step-1x", "xstep-1", "step-1.old", "step-+1", "step- 1",
                           "step-99999999999999999999"})
    EXPECT_EQ(step_of_folder(name), std::nullopt) << name;
}

TEST(CheckpointNames, OnlyWhatASaveWritesIsASaves) {
  EXPECT_EQ(data_file_name(3, 1, 0), "data-0003-00001-0000.safetensors");
  EXPECT_EQ(attempt_of(data_file_name(12345, 678901, 23456)), 12345);
  EXPECT_EQ(attempt_of(data_file_name(3, 1, 0) + ".partial-99"), 3);
  EXPECT_TRUE(is_of_save("index.json.partial-99"));
  for (const auto* name : {"", "index.json", "index.json.partial-", "data-", "data-0003", "data-3-1-0.safetensors",
                           "data-0003-00001-0000.safetensors.bak", "data-0003-00001-0000.safetensors.partial-9.bak",
                           "my-data-0003-00001-0000.safetensors", "data-0003-00001-.safetensors",
                           "data-9999999999999999999-00001-0000.safetensors", "model.safetensors"})
    EXPECT_FALSE(is_of_save(name)) << name;
}

TEST_F(CheckpointFolder, FindsCompleteStepsOnly) {
  for (const auto step : {3, 20, 100}) save(step);
  write(200, kData);
  fs::create_directory(folder_.file("step-x"));
  fs::copy(path(20), folder_.file("step-020"));
  EXPECT_THAT(complete_steps(root()), ElementsAre(3, 20, 100));
  EXPECT_EQ(step_to_load(root(), -1), 100);
  EXPECT_EQ(step_to_load(root(), 20), 20);
  EXPECT_EQ(step_to_load(folder_.file("none"), -1), std::nullopt);
}

TEST_F(CheckpointFolder, AnAbsentStepIsBadInput) {
  const auto message = [&] { return message_of<BadInput>([&] { step_to_load(root(), 200); }); };
  EXPECT_EQ(message(), "checkpoint.load_step is 200, but " + root() + " has no complete checkpoint.");
  for (const auto step : {3, 20}) save(step);
  EXPECT_EQ(message(), "checkpoint.load_step is 200, but " + root() + " has only 3, 20.");
}

TEST_F(CheckpointFolder, RemovesAllButTheLatest) {
  for (const auto step : {3, 20, 100}) save(step);
  remove_old_checkpoints(root(), 0, {});
  EXPECT_EQ(complete_steps(root()).size(), 3U);
  remove_old_checkpoints(root(), 2, {});
  EXPECT_THAT(complete_steps(root()), ElementsAre(20, 100));
  EXPECT_FALSE(fs::exists(path(3)));
}

/// Of a parent's run those up to the step that it was left at, and nobody else's.
TEST_F(CheckpointFolder, RemovesItsOwnAndThoseItCameFrom) {
  const RunOrigin mine{"mine", "", {{"parent", 20}}};
  save(10, {"parent", "", {}});
  save(15, {"stranger", "", {}});
  save(30, {"parent", "", {}});
  for (const auto step : {40, 50}) save(step, mine);
  remove_old_checkpoints(root(), 1, mine);
  EXPECT_THAT(complete_steps(root()), ElementsAre(15, 30, 50));
}

TEST_F(CheckpointFolder, RemovingLeavesWhatNoSaveWrote) {
  for (const auto step : {3, 20}) save(step);
  write(3, "notes.txt");
  write(3, "data-0001-00000-0000.safetensors.partial-77");
  remove_old_checkpoints(root(), 1, {});
  EXPECT_THAT(complete_steps(root()), ElementsAre(20));
  EXPECT_THAT(names("step-3"), ElementsAre("notes.txt"));
}

TEST_F(CheckpointFolder, ARenamedOrCopiedOneIsRefused) {
  save(40, {"me", "", {}});
  fs::rename(path(40), path(50));
  const auto wanted = path(50) +
                      ": holds step 40, its name says step 50: it was renamed or copied. Call it step-40, or a copy "
                      "anything but step-N.";
  EXPECT_EQ(message_of<FileError>([&] { Checkpoint{path(50)}; }), wanted);
  EXPECT_EQ(message_of<FileError>([&] { saved_metadata(path(50)); }), wanted);
  EXPECT_EQ(saved_origin(path(50)), std::nullopt);
  EXPECT_NE(message_of<FileError>([&] { Checkpoint{path(50) + "/"}; }), "no such error")
      << "however the path is written";
  EXPECT_NE(message_of<FileError>([&] { Checkpoint{path(50) + "/../step-50/."}; }), "no such error");
  const auto before = fs::current_path();
  fs::current_path(path(50));
  EXPECT_NE(message_of<FileError>([] { Checkpoint{"."}; }), "no such error");
  fs::current_path(before);
}

TEST_F(CheckpointFolder, ACopyOfAnotherNameIsRead) {
  save(40);
  fs::copy(path(40), folder_.file("step-40.old"));
  fs::copy(path(40), folder_.file("backup"));
  EXPECT_EQ(Checkpoint(folder_.file("step-40.old")).metadata().step, 40);
  EXPECT_EQ(saved_metadata(folder_.file("backup") + "/").step, 40);
}

TEST_F(CheckpointFolder, ARenamedOneIsNobodysToRemove) {
  for (const auto step : {3, 20, 100}) save(step);
  fs::rename(path(3), path(4));
  remove_old_checkpoints(root(), 1, {});
  EXPECT_THAT(complete_steps(root()), ElementsAre(4, 100));
}

TEST_F(CheckpointFolder, AbandonedOnesGo) {
  save(3);
  write(5, kData);
  write(5, "data-0000-00001-0000.safetensors.partial-77");
  write(5, "index.json.partial-77");
  fs::create_directory(path(7));
  write(9, kData);
  remove_abandoned(root(), 9);
  EXPECT_THAT(names(), UnorderedElementsAre("step-3", "step-9"));
  EXPECT_THAT(names("step-3"), UnorderedElementsAre(kData, "index.json"));
  EXPECT_THAT(names("step-9"), ElementsAre(kData));
}

TEST_F(CheckpointFolder, WhatNoSaveWroteStaysInAbandonedOnes) {
  write(5, kData);
  write(5, "data.csv");
  fs::create_directory(path(5) + "/data-0001-00000-0000.safetensors");
  fs::create_symlink("nowhere", path(5) + "/data-0002-00000-0000.safetensors");
  remove_abandoned(root(), 9);
  EXPECT_THAT(names("step-5"),
              UnorderedElementsAre("data.csv", "data-0001-00000-0000.safetensors", "data-0002-00000-0000.safetensors"));
}

TEST_F(CheckpointFolder, WhatMayBeACheckpointIsNotAbandoned) {
  write(5, kData);
  fs::create_symlink("on a disk that is away", path(5) + "/index.json");
  fs::create_directory(folder_.file("elsewhere"));
  folder_.write(std::string("elsewhere/") + kData, "x");
  fs::create_directory_symlink("elsewhere", path(6));
  fs::create_directory(folder_.file("step-07"));
  folder_.write(std::string("step-07/") + kData, "x");
  remove_abandoned(root(), 9);
  EXPECT_THAT(names("step-5"), UnorderedElementsAre(kData, "index.json"));
  EXPECT_THAT(names("step-6"), ElementsAre(kData));
  EXPECT_THAT(names("step-07"), ElementsAre(kData));
}

TEST_F(CheckpointFolder, NoFolderHasNothingAbandoned) { EXPECT_NO_THROW(remove_abandoned(folder_.file("none"), 1)); }

/// A crash of pruning, between the index and the rest.
TEST_F(CheckpointFolder, WhatPruningLeftIsAbandoned) {
  save(3);
  fs::remove(path(3) + "/index.json");
  remove_abandoned(root(), 4);
  EXPECT_THAT(names(), IsEmpty());
}

/// Its file seems to be the one that it was: who has read it does not read it again.
void damage_unseen(const std::string& index) {
  struct stat status {};
  ASSERT_EQ(::stat(index.c_str(), &status), 0);
  std::ofstream(index, std::ios::in | std::ios::out) << "damaged";
  const timespec times[] = {status.st_atim, status.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, index.c_str(), times, 0), 0);
}

TEST_F(CheckpointFolder, AnIndexIsReadOnceWhileItsFileIsTheSame) {
  save(3, {"me", "", {}});
  SavedOrigins known;
  EXPECT_EQ(known.of(path(3))->identity, "me");
  const auto index = path(3) + "/index.json";
  damage_unseen(index);
  EXPECT_EQ(known.of(path(3))->identity, "me");
  EXPECT_EQ(SavedOrigins().of(path(3)), std::nullopt);
  save(3, {"another", "", {}});
  EXPECT_EQ(known.of(path(3))->identity, "another");
  fs::remove(index);
  EXPECT_EQ(known.of(path(3)), std::nullopt);
}

TEST_F(CheckpointFolder, NothingIsReadWhereNothingCanGo) {
  save(3, {"me", "", {}});
  SavedOrigins known;
  remove_old_checkpoints(root(), 1, {"me", "", {}}, known);
  damage_unseen(path(3) + "/index.json");
  EXPECT_EQ(known.of(path(3)), std::nullopt) << "it was not read before";
  remove_old_checkpoints(root(), 1, {"me", "", {}}, known);
  EXPECT_THAT(complete_steps(root()), ElementsAre(3));
}

}  // namespace
}  // namespace lockstep::trainer

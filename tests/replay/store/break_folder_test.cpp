// The folder of a break: it holds one break and nothing else, and nothing of anybody else is ever lost.
#include "replay/store/break_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "replay/store/recording_file.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

std::string index_of(const std::string& op) {
  const RecordedTensor tensor{"result.0", 6, {2}, Bytes(8)};
  const auto bytes = break_file(op, 1, 2, {tensor});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A break of `op` with tensors of these names, which all hold the op's name.
std::vector<BreakFolder::File> break_of(const std::string& op, const Names& tensors) {
  std::vector<BreakFolder::File> files{{"op.h5", index_of(op)}};
  for (const auto& name : tensors) files.emplace_back(name, op);
  return files;
}

class BreakFolders : public ::testing::Test {
 protected:
  std::string path() const { return folder_.file("break"); }

  Names names() const {
    Names names;
    if (!std::filesystem::exists(path())) return names;
    for (const auto& entry : std::filesystem::directory_iterator(path()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string content(const std::string& name) const { return file_content(path() + "/" + name); }
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path());
    folder_.write("break/" + name, text);
  }
  std::string refusal() const {
    return message_of<BadInput>([&] { BreakFolder{path()}; });
  }

  TemporaryFolder folder_;
  const std::vector<BreakFolder::File> mm_ =
                                           break_of("mm #0", {"operand.self.npy", "operand.mat2.npy", "result.0.npy"}),
                                       neg_ = break_of("neg #0", {"operand.self.npy", "result.0.npy"});
};

TEST_F(BreakFolders, AreMade) {
  EXPECT_THAT(BreakFolder(path() + "/inner/").write(mm_),
              ElementsAre(path() + "/inner/op.h5", path() + "/inner/operand.self.npy",
                          path() + "/inner/operand.mat2.npy", path() + "/inner/result.0.npy"));
  EXPECT_THAT(names(), ElementsAre("inner"));
}

TEST_F(BreakFolders, AreNotMadeByLooking) {
  const BreakFolder folder(path());
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(BreakFolders, HoldTheLastBreakAlone) {
  const BreakFolder folder(path());
  folder.write(mm_);
  EXPECT_THAT(names(), ElementsAre("op.h5", "operand.mat2.npy", "operand.self.npy", "result.0.npy"));
  folder.write(neg_);
  EXPECT_THAT(names(), ElementsAre("op.h5", "operand.self.npy", "result.0.npy"));
  for (const char* name : {"operand.self.npy", "result.0.npy"}) EXPECT_EQ(content(name), "neg #0");
  EXPECT_EQ(content("op.h5"), index_of("neg #0"));
}

TEST_F(BreakFolders, KeepWhatIsOfNobodysBreak) {
  BreakFolder(path()).write(mm_);
  put("notes.txt", "mine");
  EXPECT_EQ(refusal(), path() + " holds notes.txt, which is of no break: choose another folder (--dump), or move it.");
  EXPECT_EQ(content("notes.txt"), "mine");
  EXPECT_EQ(content("result.0.npy"), "mm #0");
}

TEST_F(BreakFolders, AreLookedAtAgainBeforeAnythingIsWritten) {
  const BreakFolder folder(path());
  folder.write(mm_);
  put("notes.txt", "mine");
  EXPECT_THROW(folder.write(neg_), BadInput);
  EXPECT_EQ(content("op.h5"), index_of("mm #0"));
  EXPECT_EQ(names().size(), 5U);
}

/// A name alone does not make a file ours.
TEST_F(BreakFolders, KeepFilesThatAreOnlyNamedLikeABreaks) {
  put("result.0.npy", "mine");
  EXPECT_THAT(refusal(), HasSubstr("op.h5 is not of a break, so neither are the files beside it"));
  put("op.h5", "an HDF5 file of somebody else");
  EXPECT_THAT(refusal(), HasSubstr("op.h5 is not of a break"));
  EXPECT_EQ(content("result.0.npy"), "mine");
  put("op.h5", index_of("mm #0"));
  EXPECT_EQ(refusal(), "no such error");
}

TEST_F(BreakFolders, KeepFoldersAndLinks) {
  BreakFolder(path()).write(mm_);
  std::filesystem::create_directory(path() + "/result.1.npy");
  EXPECT_THAT(refusal(), HasSubstr("holds result.1.npy"));
  std::filesystem::remove(path() + "/result.1.npy");
  folder_.write("elsewhere", "mine");
  std::filesystem::create_symlink(folder_.file("elsewhere"), path() + "/result.1.npy");
  EXPECT_THAT(refusal(), HasSubstr("holds result.1.npy"));
}

TEST_F(BreakFolders, AreNoFiles) {
  folder_.write("break", "mine");
  EXPECT_EQ(refusal(), path() + " is no folder: choose another one for the break (--dump).");
}

TEST_F(BreakFolders, LoseWhatABreakThatWasCutOffHasLeft) {
  put("op.h5.partial-123", "torn"), put("operand.self.npy.partial-123", "torn");
  EXPECT_EQ(refusal(), "no such error");
  BreakFolder(path()).write(neg_);
  EXPECT_THAT(names(), ElementsAre("op.h5", "operand.self.npy", "result.0.npy"));
  put("notes.partial-123", "mine");
  EXPECT_THAT(refusal(), HasSubstr("holds notes.partial-123"));
}

/// A name that is too long stands for a disk that is full.
TEST_F(BreakFolders, KeepTheOldBreakWhereANewOneCannotBeWritten) {
  BreakFolder(path()).write(mm_);
  const auto name = std::string(300, 'x');
  EXPECT_THROW(BreakFolder(path()).write(break_of("neg #0", {"operand." + name + ".npy"})), FileError);
  EXPECT_THAT(names(), ElementsAre("op.h5", "operand.mat2.npy", "operand.self.npy", "result.0.npy"));
  EXPECT_EQ(content("op.h5"), index_of("mm #0"));
}

TEST_F(BreakFolders, AreKnownByTheFirstBytesOfLargeFiles) {
  std::vector<RecordedTensor> tensors;
  for (int i = 0; i < 40; ++i) tensors.push_back({"operand." + std::to_string(i), 6, {10'000}, Bytes(40'000)});
  const auto bytes = break_file(std::string(900, 'x'), 1, 2, tensors);
  put("op.h5", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  EXPECT_EQ(refusal(), "no such error");
}

TEST(BreakFile, HoldsTheTensorsAlone) {
  const auto text = index_of("step 2, microbatch 0, forward, mm #0");
  EXPECT_TRUE(text.starts_with("\x89HDF\r\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("step 2, microbatch 0, forward, mm #0"), HasSubstr("result.0")));
  for (const char* table : {"ops", "pieces", "payload", "tokens", "scalars"})
    EXPECT_THAT(text, ::testing::Not(HasSubstr(table))) << "an empty table of a recording";
}

}  // namespace
}  // namespace lockstep::replay

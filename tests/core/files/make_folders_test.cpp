// mkdir() and fsync() of this program go through this file, so that it sees what is flushed, and when.
#include "core/files/make_folders.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/ordinary_user.h"
#include "tests/support/temporary_folder.h"

namespace {

std::atomic<std::vector<std::string>*> calls = nullptr;  ///< of the one thread that wants to know, or nothing

void note(const std::string& call) {
  if (auto* const noted = calls.load()) noted->push_back(call);
}

}  // namespace

extern "C" {
int mkdir(const char* path, mode_t mode) noexcept {
  note(std::string("mkdir ") + path);
  return static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
int fsync(int descriptor) {
  note("fsync " + std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor)).string());
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}
}

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string refusal(const std::string& path) {
  return testing::message_of<FileError>([&] { make_folders(path); });
}

/// Relative paths are meant inside a folder of the test's own.
class MakeFolders : public ::testing::Test {
 protected:
  void SetUp() override { fs::current_path(folder_.path()); }
  void TearDown() override { fs::current_path(before_); }

  fs::path before_ = fs::current_path();
  TemporaryFolder folder_;
};

TEST_F(MakeFolders, TellsWhichAreNew) {
  EXPECT_THAT(make_folders(folder_.file("a/b")), ElementsAre(folder_.file("a"), folder_.file("a/b")));
  EXPECT_THAT(make_folders(folder_.file("a/b/c")), ElementsAre(folder_.file("a/b/c")));
  EXPECT_THAT(make_folders(folder_.file("a/b/c")), IsEmpty());
  EXPECT_TRUE(fs::is_directory(folder_.file("a/b/c")));
}

TEST_F(MakeFolders, EachNewNameIsFlushedBeforeTheNext) {
  const auto root = fs::current_path().string();
  fs::create_directory("a");
  std::vector<std::string> noted;
  calls = &noted;
  make_folders("a/b/c");
  make_folders("d");
  make_folders("a/b/c");
  calls = nullptr;
  EXPECT_THAT(noted, ElementsAre("mkdir a/b", "fsync " + root + "/a", "mkdir a/b/c", "fsync " + root + "/a/b",  //
                                 "mkdir d", "fsync " + root));
}

TEST_F(MakeFolders, TakesPathsAsPeopleWriteThem) {
  EXPECT_THAT(make_folders("a/b/"), ElementsAre("a", "a/b"));
  EXPECT_THAT(make_folders("a//b/./c"), ElementsAre("a/b/./c"));
  EXPECT_THAT(make_folders("a/../d"), ElementsAre("a/../d"));
  for (const auto* there : {"", ".", "./", "..", "/", "a", "a/", "d"}) EXPECT_THAT(make_folders(there), IsEmpty());
}

TEST_F(MakeFolders, GoesThroughLinks) {
  fs::create_directory("real");
  fs::create_symlink("real", "link");
  EXPECT_THAT(make_folders("link/a"), ElementsAre("link/a"));
  EXPECT_TRUE(fs::is_directory("real/a"));
}

TEST_F(MakeFolders, NamesWhatIsInTheWay) {
  folder_.write("file", "");
  EXPECT_EQ(refusal("file"), "file cannot be created: Not a directory");
  EXPECT_EQ(refusal("file/a"), "file cannot be created: Not a directory");
  fs::create_symlink("loop", "loop");
  EXPECT_EQ(refusal("loop/a"), "loop cannot be created: Too many levels of symbolic links");
  fs::create_symlink("nowhere", "dangling");
  EXPECT_EQ(refusal("dangling/a"), "dangling cannot be created: File exists");
  EXPECT_EQ(refusal("/proc/none/a"), "/proc/none cannot be created: No such file or directory");
  const std::string long_name(300, 'x');
  EXPECT_EQ(refusal(long_name), long_name + " cannot be created: File name too long");
}

TEST_F(MakeFolders, NoPermissionIsNamedAndWhatIsNewStays) {
  fs::permissions(".", fs::perms::all);
  testing::as_ordinary_user([] {
    make_folders("closed");
    fs::permissions("closed", fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_EQ(refusal("closed/a"), "closed/a cannot be created: Permission denied");
    fs::permissions("closed", fs::perms::none);
    EXPECT_EQ(refusal("closed/a"), "closed/a cannot be created: Permission denied") << "nor can it be looked at";
    EXPECT_EQ(refusal("new/../closed/a"), "new/../closed/a cannot be created: Permission denied");
  });
  EXPECT_TRUE(fs::is_directory("new"));
}

TEST_F(MakeFolders, OneOfManyCreatesEach) {
  constexpr int kDepth = 50;
  std::string path = "x";
  for (int i = 1; i < kDepth; ++i) path += "/x";
  std::atomic<size_t> made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { made += make_folders(path).size(); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(made, static_cast<size_t>(kDepth));
}

}  // namespace
}  // namespace lockstep

#include "core/files/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/error.h"
#include "tests/support/file_size_limit.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lockstep_atomic_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "report.json") const { return (folder_ / name).string(); }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }

  /// The message of the FileError that `action` must throw.
  template <class Action>
  static std::string file_error(Action action) {
    try {
      action();
    } catch (const FileError& error) {
      return error.what();
    }
    return "no FileError";
  }

  fs::path folder_;
};

TEST_F(AtomicFileTest, AppearsOnlyOnCommit) {
  write_file_atomically(path(), "old");
  AtomicFile file(path());
  file.write("new ");
  file.write("content");
  EXPECT_EQ(content(path()), "old");
  file.commit();
  EXPECT_EQ(content(path()), "new content");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, WithoutCommitTheOldFileStays) {
  write_file_atomically(path(), "old");
  { AtomicFile(path()).write("half of the new one"); }
  EXPECT_EQ(content(path()), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, AFullDiskIsNamedAndLeavesTheOldFile) {
  write_file_atomically(path(), "old");
  const FileSizeLimit limit(1000);
  const auto message = file_error([&] { write_file_atomically(path(), std::string(5000, 'x')); });
  EXPECT_EQ(message, path() + " cannot be written: File too large");
  EXPECT_EQ(content(path()), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, AFullDeviceIsNamed) {
  EXPECT_EQ(file_error([] { write_file_atomically("/dev/full", "x"); }),
            "/dev/full cannot be written: No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(AtomicFileTest, AMissingFolderIsNamed) {
  EXPECT_EQ(file_error([&] { write_file_atomically(path("absent/report.json"), "x"); }),
            path("absent/report.json") + " cannot be written: No such file or directory");
}

TEST_F(AtomicFileTest, AFolderInTheWayIsNamed) {
  fs::create_directory(path());
  EXPECT_THAT(file_error([&] { write_file_atomically(path(), "x"); }),
              AllOf(HasSubstr(path()), HasSubstr("directory")));
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, ASymbolicLinkSurvives) {
  write_file_atomically(path("target"), "old");
  fs::create_symlink("target", path("link"));
  write_file_atomically(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("target")), "new");
}

TEST_F(AtomicFileTest, DevicesAreWrittenInPlace) {
  write_file_atomically("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(AtomicFileTest, WhatACrashLeavesIsKnownByItsName) {
  AtomicFile file(path());
  const auto left = fs::directory_iterator(folder_)->path().filename().string();
  EXPECT_EQ(name_before_crash(left), "report.json");
  EXPECT_EQ(name_before_crash("a.partial-1.partial-22"), "a.partial-1");
  for (const auto* other : {"", "report.json", "a.partial-", "a.partial-1x", "a.partial", "a.partial--1"})
    EXPECT_EQ(name_before_crash(other), "") << other;
}

TEST_F(AtomicFileTest, EmptyContentAndRelativePaths) {
  const auto before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomically("empty", "");
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(path("empty")));
  EXPECT_EQ(fs::file_size(path("empty")), 0u);
}

}  // namespace
}  // namespace lockstep

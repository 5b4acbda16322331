#include "core/files/random_access_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using testing::message_of;

std::string refusal_to_open(const std::string& path) {
  return message_of<FileError>([&] { RandomAccessFile{path}; });
}

TEST(RandomAccessFile, ReadsAnyPart) {
  const TemporaryFolder folder;
  const RandomAccessFile file(folder.write("f", "0123456789"));
  std::string part(4, ' ');
  file.read(3, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, "3456");
  EXPECT_EQ(file.size(), 10);
  EXPECT_EQ(file.text(10), "0123456789");
}

TEST(RandomAccessFile, NothingIsReadBeyondTheEnd) {
  const TemporaryFolder folder;
  const auto path = folder.write("f", "0123456789");
  const RandomAccessFile file(path);
  std::string part(4, ' ');
  EXPECT_EQ(message_of<FileError>([&] { file.read(8, std::as_writable_bytes(std::span(part))); }),
            path + ": ends at byte 10, 2 bytes more were expected.");
  EXPECT_EQ(message_of<FileError>([&] { file.text(9); }), path + ": is of 10 bytes, 9 are the most that it can be.");
}

TEST(RandomAccessFile, OpensRegularFilesOnlyAndWaitsForNobody) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal_to_open(folder.file("f")), folder.file("f") + ": cannot be opened: No such file or directory.");
  EXPECT_EQ(refusal_to_open(folder.path()), folder.path() + ": is not a regular file.");
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0666), 0);
  EXPECT_EQ(refusal_to_open(folder.file("pipe")), folder.file("pipe") + ": is not a regular file.");
  std::filesystem::create_symlink("loop", folder.file("loop"));
  EXPECT_EQ(refusal_to_open(folder.file("loop")),
            folder.file("loop") + ": cannot be opened: Too many levels of symbolic links.");
}

}  // namespace
}  // namespace lockstep

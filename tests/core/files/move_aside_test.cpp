#include "core/files/move_aside.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/ordinary_user.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::message_of;

TEST(MoveAside, TakesTheFirstFreeName) {
  const TemporaryFolder folder;
  folder.write("a-1.txt", "somebody's");
  fs::create_symlink("nowhere", folder.file("a-2.txt"));
  EXPECT_EQ(move_aside(folder.write("a.txt", "first")), folder.file("a-3.txt"));
  EXPECT_EQ(move_aside(folder.write("a.txt", "second")), folder.file("a-4.txt"));
  EXPECT_FALSE(fs::exists(folder.file("a.txt")));
  EXPECT_EQ(file_content(folder.file("a-1.txt")), "somebody's");
  EXPECT_EQ(file_content(folder.file("a-3.txt")), "first");
  EXPECT_EQ(file_content(folder.file("a-4.txt")), "second");
}

TEST(MoveAside, TakesAnyName) {
  const TemporaryFolder folder;
  EXPECT_EQ(move_aside(folder.write("plain", "")), folder.file("plain-1"));
  const auto before = fs::current_path();
  fs::current_path(folder.path());
  folder.write("a.b.c", "");
  EXPECT_EQ(move_aside("a.b.c"), "a.b-1.c");
  fs::current_path(before);
}

TEST(MoveAside, NamesWhatCannotBeMoved) {
  const TemporaryFolder folder;
  const auto path = folder.file("a"), aside = folder.file("a-1");
  const auto message = [&] { return message_of<FileError>([&] { move_aside(path); }); };
  EXPECT_EQ(message(), path + " cannot be renamed to " + aside + ": No such file or directory");
  folder.write("a", "");
  for (const auto closed : {fs::perms::owner_read | fs::perms::owner_exec, fs::perms::none}) {
    fs::permissions(folder.path(), closed);
    testing::as_ordinary_user(
        [&] { EXPECT_EQ(message(), fmt::format("{} cannot be renamed to {}: Permission denied", path, aside)); });
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
}

}  // namespace
}  // namespace lockstep

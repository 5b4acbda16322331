// Who writes into a folder keeps others out, for as long as it lives and not longer. What a file system without locks
// answers is not tried here: there is none to be had.
#include "trainer/checkpoint/folder_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/ordinary_user.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::message_of;

class FolderLocks : public ::testing::Test {
 protected:
  std::string path() const { return folder_.file("out"); }
  std::string refusal() const {
    return message_of<BadInput>([&] { FolderLock(path(), "job.dump_folder"); });
  }
  std::string failure() const {
    return message_of<FileError>([&] { FolderLock(path(), "job.dump_folder"); });
  }
  std::string refusal_naming(const std::string& owner) const {
    return path() + ": another run" + owner +
           " writes here. Wait until it has ended, or choose another job.dump_folder.";
  }

  TemporaryFolder folder_;
};

std::string name_of(pid_t process) {
  char host[256] = {};
  EXPECT_EQ(::gethostname(host, sizeof host - 1), 0);
  return " (process " + std::to_string(process) + " on " + host + ")";
}

/// A process that has the lock when the constructor returns, and does nothing.
class Holder {
 public:
  explicit Holder(const std::string& folder) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const FileDescriptor reading(ends[0]);
    FileDescriptor writing(ends[1]);
    id_ = ::fork();
    if (id_ == 0) hold(folder, writing.get());
    writing.reset();
    char byte = 0;
    EXPECT_EQ(::read(reading.get(), &byte, 1), 1) << "it has no lock";
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  pid_t id() const { return id_; }
  void kill() {
    if (id_ < 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
    id_ = -1;
  }

 private:
  [[noreturn]] static void hold(const std::string& folder, int told) {
    try {
      const FolderLock lock(folder, "key");
      if (::write(told, "x", 1) == 1) ::pause();
    } catch (const std::exception&) {
    }
    ::_exit(1);
  }

  pid_t id_ = -1;
};

TEST_F(FolderLocks, TheFolderIsMadeAndItsOwnerWritten) {
  const FolderLock lock(folder_.file("out/deep"), "key");
  auto text = file_content(folder_.file("out/deep/.lock"));
  ASSERT_TRUE(text.ends_with('\n'));
  text.pop_back();
  EXPECT_EQ(" (" + text + ")", name_of(::getpid()));
}

TEST_F(FolderLocks, AKilledProcessLeavesItFree) {
  Holder holder(path());
  EXPECT_EQ(refusal(), refusal_naming(name_of(holder.id())));
  holder.kill();
  const FolderLock mine(path(), "key");
  EXPECT_EQ(refusal(), refusal_naming(name_of(::getpid()))) << "nor another one of this process";
}

TEST_F(FolderLocks, ItsEndFreesItAndTheFileStays) {
  { const FolderLock lock(path(), "key"); }
  EXPECT_TRUE(fs::exists(path() + "/.lock"));
  FolderLock lock(path(), "key");
  const auto moved = std::move(lock);
  EXPECT_EQ(refusal(), refusal_naming(name_of(::getpid())));
}

TEST_F(FolderLocks, AProgramThatItsOwnerStartsDoesNotKeepIt) {
  pid_t sleeping = -1;
  {
    const FolderLock lock(path(), "key");
    char program[] = "/bin/sleep", seconds[] = "600";
    char* const arguments[] = {program, seconds, nullptr};
    ASSERT_EQ(::posix_spawn(&sleeping, program, nullptr, nullptr, arguments, environ), 0);
  }
  EXPECT_NO_THROW(FolderLock(path(), "key"));
  ::kill(sleeping, SIGKILL);
  ::waitpid(sleeping, nullptr, 0);
}

TEST_F(FolderLocks, AForkedChildThatEndsFreesNothing) {
  FolderLock lock(path(), "key");
  const pid_t child = ::fork();
  if (child == 0) {
    { const auto ending = std::move(lock); }
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(refusal(), refusal_naming(name_of(::getpid())));
}

/// What a file says that anybody may have written goes to a terminal.
TEST_F(FolderLocks, AnOwnerIsNamedOnlyInPlainText) {
  fs::create_directory(path());
  for (const std::string text : {"", "process 1", "someone\n", "process 1 on \x1b[2J\n"}) {
    const FileDescriptor file(::open(folder_.write("out/.lock", text).c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(file.get(), LOCK_EX), 0);
    EXPECT_EQ(refusal(), refusal_naming("")) << text;
  }
}

TEST_F(FolderLocks, AFolderThatCannotBeWrittenIsNamed) {
  fs::create_directory(path());
  fs::permissions(folder_.path(), fs::perms::all);
  fs::permissions(path(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
  if (::geteuid() != 0) fs::permissions(path(), fs::perms::owner_read | fs::perms::owner_exec);
  testing::as_ordinary_user([&] { EXPECT_EQ(failure(), path() + "/.lock cannot be written: Permission denied"); });
  EXPECT_THAT(message_of<FileError>([] { FolderLock("/proc", "key"); }), HasSubstr("/proc/.lock cannot be written: "));
  fs::permissions(path(), fs::perms::owner_all);
}

TEST_F(FolderLocks, WhatIsNoFileIsNotWrittenTo) {
  fs::create_directory(path());
  const auto lock = path() + "/.lock";
  fs::create_directory(lock);
  EXPECT_EQ(failure(), lock + " cannot be written: Is a directory");
  fs::remove(lock);
  fs::create_symlink(folder_.write("precious", "text"), lock);
  EXPECT_EQ(failure(), lock + " cannot be written: Too many levels of symbolic links");
  EXPECT_EQ(file_content(folder_.file("precious")), "text");
  fs::remove(lock);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0666), 0);
  EXPECT_EQ(failure(), lock + " is no file");
}

TEST_F(FolderLocks, FoldersThatAreOneAreLockedOnce) {
  fs::create_directory(path());
  fs::create_directory_symlink("out", folder_.file("link"));
  const FolderToLock folders[] = {{path(), "a"}, {path() + "/.", "b"}, {folder_.file("link/"), "c"}};
  const auto locks = lock_folders(folders);
  EXPECT_EQ(locks.size(), 1u);
  EXPECT_TRUE(locks[0].is_on(folder_.file("link")));
  EXPECT_FALSE(locks[0].is_on(folder_.path()));
}

TEST_F(FolderLocks, AllOrNone) {
  const FolderToLock folders[] = {{path(), "job.dump_folder"}, {folder_.file("other"), "checkpoint.folder"}};
  Holder holder(folder_.file("other"));
  EXPECT_THAT(message_of<BadInput>([&] { lock_folders(folders); }), HasSubstr("choose another checkpoint.folder."));
  EXPECT_NO_THROW(FolderLock(path(), "key"));
  holder.kill();
  const auto locks = lock_folders(folders);
  EXPECT_EQ(locks.size(), 2u);
  EXPECT_EQ(refusal(), refusal_naming(name_of(::getpid())));
}

}  // namespace
}  // namespace lockstep::trainer

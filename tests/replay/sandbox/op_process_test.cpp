// The process that an op of a case is run in: what it asks the system for fails, and it goes on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/error.h"
#include "core/sanitized.h"
#include "replay/sandbox/reader_process.h"

namespace lockstep::replay {
namespace {

/// What a call gave there, and its error.
template <class Call>
std::string there(const Call& call) {
  const auto work = [&] {
    const auto result = call();
    return fmt::format("{} {}", result, errno);
  };
  return ReaderProcess(work, limits_for_op(0)).answer();
}

const std::string kRefused = fmt::format("-1 {}", EPERM), kNoFile = fmt::format("-1 {}", ENOENT);

TEST(OpProcess, GetsNothingButMemory) {
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  EXPECT_EQ(there([] { return ::open("/etc/passwd", O_RDONLY); }), kNoFile);
  EXPECT_EQ(there([] { return ::open("/tmp/lockstep-must-not-exist", O_RDWR | O_CREAT, 0666); }), kNoFile);
  EXPECT_EQ(there([] { return ::creat("/tmp/lockstep-must-not-exist", 0666); }), kRefused);
  EXPECT_EQ(there([] { return ::truncate("/tmp/lockstep-must-not-exist", 0); }), kRefused);
  EXPECT_EQ(there([] { return ::unlink("/tmp/lockstep-must-not-exist"); }), kRefused);
  EXPECT_EQ(there([] { return ::socket(AF_INET, SOCK_STREAM, 0); }), kRefused);
  EXPECT_EQ(there([&] { return ::execv(program, arguments); }), kRefused);
  EXPECT_EQ(there([] { return ::syscall(SYS_fork); }), kRefused);
  EXPECT_EQ(there([] { return ::kill(::getppid(), SIGTERM); }), kRefused);
  EXPECT_EQ(there([] { return ::syscall(SYS_ptrace, 0, 0, 0, 0); }), kRefused);
  if (lockstep::kSanitized) return;  // sanitizers may write
  EXPECT_EQ(there([] { return ::write(STDERR_FILENO, "x", 1); }), kRefused);
}

TEST(OpProcess, MayCompileKernels) {
  const auto map_code = [] {
    void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = 0;
    return ::mprotect(memory, 4096, PROT_READ | PROT_EXEC);
  };
  EXPECT_EQ(there(map_code), "0 0");
}

TEST(OpProcess, ErrorsSayThatAnOpWasRun) {
  try {
    ReaderProcess([]() -> std::string { ::_exit(3); }, limits_for_op(0)).answer();
    FAIL() << "it ended without an answer";
  } catch (const FileError& error) {
    EXPECT_STREQ(error.what(),
                 "cannot be run: the op ended with status 3. It is not what its digest says, or Lockstep did not write "
                 "it");
  }
}

TEST(OpProcess, HasTwoSecondsAndOneForEachMegabyte) {
  EXPECT_EQ(limits_for_op(0).processor_seconds, 2U);
  EXPECT_EQ(limits_for_op(std::size_t{5} << 20).processor_seconds, 7U);
}

}  // namespace
}  // namespace lockstep::replay

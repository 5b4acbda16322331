#include "replay/sandbox/reader_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "core/error.h"
#include "core/sanitized.h"

namespace lockstep::replay {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

const ReaderLimits kSmall{64 << 20, 1, seconds(20), 1 << 20};
const std::string kAsked =
    "cannot be read: the reader asked the system for what it may not have (signal 31). It is not "
    "what its digest says, or Lockstep did not write it";

std::string answer_of(const std::function<std::string()>& work, const ReaderLimits& limits = kSmall) {
  try {
    return ReaderProcess(work, limits).answer();
  } catch (const FileError& error) {
    return std::string("FileError: ") + error.what();
  }
}

/// What becomes of a reader that makes a system call.
template <class Call>
std::string after(const Call& call) {
  return answer_of([&] {
    call();
    return std::string("went on");
  });
}

/// Waits for good: nobody wakes it.
std::string sleep() {
  int word = 0;
  ::syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
  return {};
}

TEST(ReaderProcess, AnswersWhatTheWorkReturned) {
  const std::string large(500'000, 'x');
  EXPECT_EQ(answer_of([] { return std::string("fine"); }), "fine");
  EXPECT_EQ(answer_of([] { return std::string(); }), "");
  EXPECT_EQ(answer_of([&] { return std::string(large); }), large);
}

TEST(ReaderProcess, AnExceptionIsAFileErrorWithItsText) {
  EXPECT_EQ(answer_of([]() -> std::string { throw std::runtime_error("no recording"); }), "FileError: no recording");
}

TEST(ReaderProcess, ACrashIsNamedAndHarmless) {
  volatile std::uintptr_t address = 8;
  EXPECT_EQ(
      after([&] { *reinterpret_cast<volatile int*>(address) = 1; }),
      "FileError: cannot be read: the reader crashed (signal 11). It is not what its digest says, or Lockstep did "
      "not write it");
  EXPECT_THAT(after([] { ::_exit(3); }), HasSubstr("the reader ended with status 3."));
}

TEST(ReaderProcess, NoFileExists) {
  EXPECT_EQ(answer_of([] {
              const int descriptor = ::open("/etc/passwd", O_RDONLY);
              return std::to_string(descriptor) + " " + std::to_string(errno);
            }),
            "-1 " + std::to_string(ENOENT));
  EXPECT_EQ(after([] { ::creat("/tmp/lockstep-must-not-exist", 0666); }), "FileError: " + kAsked);
}

TEST(ReaderProcess, OtherSystemCallsKillIt) {
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  EXPECT_EQ(after([] { ::socket(AF_INET, SOCK_STREAM, 0); }), "FileError: " + kAsked);
  EXPECT_EQ(after([&] { ::execv(program, arguments); }), "FileError: " + kAsked);
  EXPECT_EQ(after([] { ::syscall(SYS_fork); }), "FileError: " + kAsked);
  EXPECT_EQ(after([] { ::kill(::getppid(), 0); }), "FileError: " + kAsked);
  EXPECT_EQ(after([] { ::unlink("/tmp/none"); }), "FileError: " + kAsked);
  EXPECT_EQ(after([] { ::syscall(SYS_getrandom, nullptr, 0, 0); }), "FileError: " + kAsked);
}

TEST(ReaderProcess, ItsTimeIsLimited) {
  volatile bool on = true;
  EXPECT_THAT(answer_of([&] {
                while (on) continue;
                return std::string();
              }),
              HasSubstr("the reader took longer than 1 s of a processor"));
  auto impatient = kSmall;
  impatient.wall = seconds(1);
  EXPECT_EQ(answer_of(sleep, impatient), "FileError: cannot be read: it took longer than 1 s");
}

TEST(ReaderProcess, HasNoDescriptorButItsPipe) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  const ReaderProcess process(sleep, kSmall);
  writing.reset();
  pollfd hang_up{reading.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&hang_up, 1, 5000), 1) << "the reader holds a pipe that was open when it was made";
}

TEST(ReaderProcess, ItsAnswerIsLimited) {
  EXPECT_EQ(answer_of([] { return std::string(2 << 20, 'x'); }), "FileError: cannot be read: the reader said too much");
}

TEST(ReaderProcess, ItsMemoryIsLimited) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need more";
  EXPECT_EQ(answer_of([] { return std::string(std::vector<char>(1 << 30).size(), 'x'); }), "FileError: std::bad_alloc");
}

TEST(ReaderProcess, WritesToItsPipeAloneAndHasNoCodeInMemory) {
  if (kSanitized) GTEST_SKIP() << "sanitizers write, and map memory";
  EXPECT_EQ(after([] { EXPECT_LT(::write(STDERR_FILENO, "x", 1), 0); }), "FileError: " + kAsked);
  const auto map_code = [] {
    EXPECT_NE(::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), nullptr);
  };
  EXPECT_EQ(after(map_code), "FileError: " + kAsked);
}

TEST(ReaderProcess, WorksFromOtherThreadsThatAllocate) {
  if (kSanitized)
    GTEST_SKIP() << "the sanitizer's allocator may be locked, in a child, by a thread that the child does not have";
  const auto work = [] {
    std::vector<std::string> strings;
    for (int i = 0; i < 1000; ++i) strings.emplace_back(10'000, 'x');
    strings.clear();
    return std::string("fine");
  };
  std::string answers[4];
  std::vector<std::thread> threads;
  for (auto& answer : answers) threads.emplace_back([&] { answer = answer_of(work); });
  for (auto& thread : threads) thread.join();
  for (const auto& answer : answers) EXPECT_EQ(answer, "fine");
}

}  // namespace
}  // namespace lockstep::replay

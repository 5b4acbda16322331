#include "replay/sandbox/reader_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>

#include "core/error.h"
#include "replay/sandbox/reader_sandbox.h"

namespace lockstep::replay {
namespace {

constexpr char kDone = 'd', kThrown = 't';  // how an answer starts

/// In the child: never returns.
[[noreturn]] void answer_and_exit(const std::function<std::string()>& work, const ReaderLimits& limits, int pipe) {
  std::string answer;
  try {
    enter_sandbox(limits, pipe);
    answer = kDone + work();
  } catch (const std::exception& error) {
    answer = kThrown + std::string(error.what());
  }
  for (std::string_view rest = answer; !rest.empty();) {
    const auto written = ::write(pipe, rest.data(), rest.size());
    if (written < 0) ::_exit(1);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  ::_exit(0);
}

[[noreturn]] void system_failed(std::string_view what) {
  fail<FileError>("a process to read it in cannot be started: {}: {}", what, std::generic_category().message(errno));
}

}  // namespace

ReaderLimits limits_for(std::size_t file_bytes) {
  const auto seconds = 2 + static_cast<unsigned>(std::min<std::size_t>(file_bytes >> 27, 3600));
  return {2 * file_bytes + (std::size_t{256} << 20), seconds, std::chrono::seconds(10 * seconds),
          file_bytes + (std::size_t{64} << 10)};
}

ReaderLimits limits_for_op(std::size_t operand_bytes) {
  const auto seconds = 2 + static_cast<unsigned>(std::min<std::size_t>(operand_bytes >> 20, 3600));
  ReaderLimits limits;
  limits.memory = 16 * operand_bytes + (std::size_t{2} << 30);
  limits.processor_seconds = seconds;
  limits.wall = std::chrono::seconds(10 * seconds);
  limits.answer = std::size_t{1} << 20;
  limits.others = OtherCalls::kRefuse;
  limits.verb = "run";
  limits.noun = "op";
  return limits;
}

ReaderProcess::ReaderProcess(const std::function<std::string()>& work, const ReaderLimits& limits)
    : limits_(limits), deadline_(std::chrono::steady_clock::now() + limits.wall) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) system_failed("pipe");
  pipe_.reset(ends[0]);
  const FileDescriptor writing(ends[1]);
  child_ = ::fork();
  if (child_ < 0) system_failed("fork");
  if (child_ == 0) answer_and_exit(work, limits, writing.get());
}

ReaderProcess::~ReaderProcess() {
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
}

std::string ReaderProcess::answer() {
  auto answer = read_all();
  const int status = wait_status();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty())
    fail<FileError>("cannot be {}: {}. It is not what its digest says, or Lockstep did not write it", limits_.verb,
                    why_it_died(status));
  const bool done = answer.front() == kDone;
  answer.erase(0, 1);
  if (!done) fail<FileError>("{}", answer);
  return answer;
}

std::string ReaderProcess::read_all() {
  std::string answer;
  char part[1 << 16];
  while (wait_readable()) {
    const auto count = ::read(pipe_.get(), part, sizeof(part));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) system_failed("read");
    if (count == 0) return answer;
    answer.append(part, static_cast<std::size_t>(count));
    if (answer.size() > limits_.answer)
      fail<FileError>("cannot be {}: the {} said too much", limits_.verb, limits_.noun);
  }
  fail<FileError>("cannot be {}: it took longer than {} s", limits_.verb, limits_.wall.count());
}

bool ReaderProcess::wait_readable() const {
  using std::chrono::milliseconds;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd wanted{pipe_.get(), POLLIN, 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) system_failed("poll");
  }
}

/// The child has closed its pipe, which is the last thing that it does; one that was taken over might stay.
int ReaderProcess::wait_status() {
  for (;;) {
    int status = 0;
    const auto reaped = ::waitpid(child_, &status, WNOHANG);
    if (reaped == child_) {
      child_ = -1;
      return status;
    }
    if (reaped < 0 && errno != EINTR) system_failed("waitpid");
    if (std::chrono::steady_clock::now() > deadline_)
      fail<FileError>("cannot be {}: it took longer than {} s", limits_.verb, limits_.wall.count());
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

std::string ReaderProcess::why_it_died(int status) const {
  if (!WIFSIGNALED(status)) return fmt::format("the {} ended with status {}", limits_.noun, WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (signal == SIGXCPU)
    return fmt::format("the {} took longer than {} s of a processor", limits_.noun, limits_.processor_seconds);
  if (signal == SIGSYS)
    return fmt::format("the {} asked the system for what it may not have (signal 31)", limits_.noun);
  return fmt::format("the {} crashed (signal {})", limits_.noun, signal);
}

}  // namespace lockstep::replay

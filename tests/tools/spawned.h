#pragma once
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/files/file_descriptor.h"

extern char** environ;

namespace lockstep {

/// A file that a program's stdout or stderr goes to.
inline FileDescriptor write_to(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
}

/// A pipe that nobody reads from any more.
inline FileDescriptor without_reader() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  ::close(ends[0]);
  return FileDescriptor(ends[1]);
}

/// The processes that a process has started, in their order.
inline std::vector<pid_t> children_of(pid_t parent) {
  const auto id = std::to_string(parent);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

/// A program that runs beside the test, with nothing on stdin; a stream whose descriptor is not open is closed in it.
/// SIGINT and SIGTERM wait until it has said what they do, so that they may be sent at any moment.
class Spawned {
 public:
  Spawned(std::vector<std::string> words, const FileDescriptor& out, const FileDescriptor& err) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (const auto& [stream, number] : {std::pair{&out, STDOUT_FILENO}, std::pair{&err, STDERR_FILENO}})
      if (stream->is_open())
        ::posix_spawn_file_actions_adddup2(&files, stream->get(), number);
      else
        ::posix_spawn_file_actions_addclose(&files, number);
    hold_signals(attributes);
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const int error = ::posix_spawn(&id_, pointers[0], &files, &attributes, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    if (error != 0) throw std::runtime_error(words.front() + " cannot be started");
  }
  ~Spawned() {
    signal(SIGKILL);
    if (!status_) ::waitpid(id_, nullptr, 0);
  }
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;

  pid_t id() const { return id_; }

  void signal(int number) const {
    if (!status_) ::kill(id_, number);
  }

  /// What waitpid says of its end; none if it has not ended in that time.
  std::optional<int> wait(std::chrono::duration<double> most) {
    const auto deadline = std::chrono::steady_clock::now() + most;
    while (!status_) {
      int status = 0;
      if (::waitpid(id_, &status, WNOHANG) == id_) status_ = status;
      if (std::chrono::steady_clock::now() > deadline) break;
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    return status_;
  }

  /// The exit code; minus the signal that killed it; kHangs after `seconds`.
  int code(double seconds) {
    const auto status = wait(std::chrono::duration<double>(seconds));
    if (!status) return kHangs;
    return WIFEXITED(*status) ? WEXITSTATUS(*status) : -WTERMSIG(*status);
  }
  static constexpr int kHangs = -1000;

 private:
  static void hold_signals(posix_spawnattr_t& attributes) {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    ::posix_spawnattr_setsigmask(&attributes, &both);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }

  pid_t id_ = -1;
  std::optional<int> status_;
};

}  // namespace lockstep

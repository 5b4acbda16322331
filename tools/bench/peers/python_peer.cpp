#include "tools/bench/peers/python_peer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "core/error.h"

namespace lockstep::bench {

std::shared_ptr<PythonPeer> PythonPeer::start(const std::string& command) {
  const char* python = std::getenv("LOCKSTEP_TORCH_PYTHON");
  if (!python) return nullptr;
  auto peer = std::make_shared<PythonPeer>();
  const auto line = fmt::format("exec '{}' -W ignore '{}'/{}", python, LOCKSTEP_BENCH_FOLDER, command);
  int in[2], out[2];
  LOCKSTEP_CHECK(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0);
  if (::fork() == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(1);
  }
  peer->to_.reset(in[1]);
  peer->from_.reset(out[0]);
  ::close(in[0]);
  ::close(out[1]);
  peer->run(1);
  return peer;
}

void PythonPeer::run(int times) const {
  const auto line = fmt::format("{}\n", times);
  char answer = 0;
  const bool asked = ::write(to_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!asked || ::read(from_.get(), &answer, 1) != 1)
    fail<BadInput>("environment: LOCKSTEP_TORCH_PYTHON should be a python3 with torch; it ended.");
}

}  // namespace lockstep::bench

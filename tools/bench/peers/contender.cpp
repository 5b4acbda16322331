#include "tools/bench/peers/contender.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <sstream>

#include "core/error.h"
#include "trainer/metrics/metrics.h"

namespace lockstep::bench {
namespace {

/// Runs `child` in a new process whose standard input and output are the other end of what this returns.
FileDescriptor start(const std::function<void()>& child) {
  int ends[2];
  LOCKSTEP_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  std::fflush(nullptr);  // else the child would write it again
  const pid_t id = ::fork();
  LOCKSTEP_CHECK(id >= 0, "a process cannot be started");
  if (id == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]), ::close(ends[1]);
    child();
    ::_exit(1);
  }
  ::close(ends[1]);
  return FileDescriptor(ends[0]);
}

std::string python_with_torch() {
  if (const char* named = std::getenv("LOCKSTEP_TORCH_PYTHON")) return named;
  const std::string own = LOCKSTEP_BENCH_FOLDER "/../../../.python/bin/python3";
  return ::access(own.c_str(), X_OK) == 0 ? own : "";
}

void serve(const Contender::Work& work) {
  for (std::string line; std::getline(std::cin, line);) {
    std::string answer;
    if (line == "memory") {
      answer = fmt::format("{}", trainer::peak_resident_bytes());
    } else {
      for (int left = std::stoi(line); left > 0; --left) answer += fmt::format("{:.17g} ", work());
    }
    std::cout << answer << std::endl;
  }
}

}  // namespace

std::shared_ptr<Contender> Contender::python(const std::string& program, const std::string& argument, int threads) {
  const auto interpreter = python_with_torch();
  if (interpreter.empty()) return nullptr;
  auto contender = std::make_shared<Contender>();
  contender->name_ = program;
  contender->advice_ =
      " Peers in Python need torch and what tools/python_env installs (LOCKSTEP_TORCH_PYTHON may name another "
      "interpreter).";
  const auto path = std::string(LOCKSTEP_BENCH_FOLDER "/") + program;
  contender->socket_ = start([&] {
    ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
    ::unsetenv("GOMP_SPINCOUNT");  // Lockstep's choice, of itself
    ::execl(interpreter.c_str(), interpreter.c_str(), "-W", "ignore", path.c_str(), argument.c_str(), nullptr);
  });
  return contender;
}

std::shared_ptr<Contender> Contender::fork(const std::function<Work()>& make) {
  auto contender = std::make_shared<Contender>();
  contender->name_ = "a process of lockstep";
  contender->socket_ = start([&] {
    try {
      serve(make());
      ::_exit(0);
    } catch (const std::exception& error) {
      std::cerr << error.what() << std::endl;
    }
  });
  return contender;
}

std::vector<double> Contender::ask(const std::string& line) const {
  const auto sent = line + "\n";
  std::string answer;
  bool alive = ::send(socket_.get(), sent.data(), sent.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(sent.size());
  for (char letter = 0; alive && letter != '\n'; answer += letter) alive = ::read(socket_.get(), &letter, 1) == 1;
  if (!alive) fail<BadInput>("{} ended, and its last words are above.{}", name_, advice_);
  std::istringstream numbers(answer);
  return {std::istream_iterator<double>(numbers), {}};
}

std::vector<double> Contender::run(int times) const { return ask(std::to_string(times)); }

double Contender::peak_memory() const { return ask("memory").at(0); }

}  // namespace lockstep::bench

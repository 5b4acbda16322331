#include "core/interruption.h"

#include <atomic>
#include <cerrno>
#include <ctime>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr int64_t kSameRequest = 1'000'000'000;  ///< nanoseconds

std::atomic<int> first_signal{0}, living_handlers{0};
std::atomic<int64_t> first_time{0};
std::atomic<Leave> leave_now{nullptr};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free &&
                  std::atomic<Leave>::is_always_lock_free,
              "a signal handler may only use lock-free atomics");

int64_t nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

extern "C" void on_signal(int number) {
  const int error = errno;
  const Leave leave = leave_now.load();
  const bool remembers = living_handlers.load() > 0;
  int none = 0;
  if (!remembers) {
    if (leave) leave(number, /*again=*/false);
  } else if (first_signal.compare_exchange_strong(none, number)) {
    first_time = nanoseconds();
  } else if (leave && first_time != 0 && nanoseconds() - first_time >= kSameRequest) {
    leave(number, /*again=*/true);
  }
  errno = error;
}

void install(int number, struct sigaction* previous) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  LOCKSTEP_CHECK(::sigaction(number, &action, previous) == 0, "signal {}", number);
}

sigset_t both_signals() {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  return both;
}

}  // namespace

InterruptionHandler::InterruptionHandler() {
  ++living_handlers;
  install(SIGINT, &previous_interrupt_);
  install(SIGTERM, &previous_terminate_);
}

InterruptionHandler::~InterruptionHandler() {
  ::sigaction(SIGINT, &previous_interrupt_, nullptr);
  ::sigaction(SIGTERM, &previous_terminate_, nullptr);
  if (--living_handlers > 0) return;
  first_signal = 0;
  first_time = 0;
}

bool interruption_requested() { return first_signal.load(std::memory_order_relaxed) != 0; }

const char* interruption_signal() {
  switch (first_signal.load()) {
    case 0:
      return "";
    case SIGINT:
      return "SIGINT";
    default:
      return "SIGTERM";
  }
}

void leave_on_interruption(Leave leave) {
  leave_now = leave;
  install(SIGINT, nullptr);
  install(SIGTERM, nullptr);
  const auto both = both_signals();
  LOCKSTEP_CHECK(::pthread_sigmask(SIG_UNBLOCK, &both, nullptr) == 0);
}

InterruptionsBlocked::InterruptionsBlocked() {
  const auto both = both_signals();
  LOCKSTEP_CHECK(::pthread_sigmask(SIG_BLOCK, &both, &previous_) == 0);
}

InterruptionsBlocked::~InterruptionsBlocked() { ::pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

}  // namespace lockstep

#include "core/interruption.h"

#include <atomic>

#include "core/error.h"

namespace lockstep {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only use lock-free atomics");

extern "C" void remember_signal(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
}

void install(int number, struct sigaction* previous) {
  struct sigaction action {};
  action.sa_handler = remember_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  LOCKSTEP_CHECK(::sigaction(number, &action, previous) == 0, "signal {}", number);
}

}  // namespace

InterruptionHandler::InterruptionHandler() {
  install(SIGINT, &previous_interrupt_);
  install(SIGTERM, &previous_terminate_);
}

InterruptionHandler::~InterruptionHandler() {
  ::sigaction(SIGINT, &previous_interrupt_, nullptr);
  ::sigaction(SIGTERM, &previous_terminate_, nullptr);
  first_signal = 0;
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

}  // namespace lockstep

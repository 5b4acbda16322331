#pragma once
#include <csignal>

namespace lockstep {

/// While it lives, SIGINT and SIGTERM only set a flag: the step is finished and saved before the program ends (exit 6).
/// Launchers often deliver a signal twice, so repetitions change nothing; SIGQUIT and SIGKILL still end at once.
/// One at a time in a process. The destructor restores the previous handlers and forgets the request.
class InterruptionHandler {
 public:
  InterruptionHandler();
  ~InterruptionHandler();
  InterruptionHandler(const InterruptionHandler&) = delete;
  InterruptionHandler& operator=(const InterruptionHandler&) = delete;

 private:
  struct sigaction previous_interrupt_ {};
  struct sigaction previous_terminate_ {};
};

/// Whether a signal has come. Costs one load; any thread may ask.
bool interruption_requested();

/// "SIGINT" or "SIGTERM", the first that came; empty when none did.
const char* interruption_signal();

}  // namespace lockstep

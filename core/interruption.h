#pragma once
#include <csignal>

namespace lockstep {

/// While it lives, SIGINT and SIGTERM only set a flag: the step is finished and saved before the program ends (exit 6).
/// Handlers may be nested; the last destructor forgets the request, each restores the handlers that it found.
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

/// Ends the process. Called in a signal handler: only what is safe there is allowed. `again`: a signal before this one
/// is remembered, and what is done about it has not ended yet.
using Leave = void (*)(int number, bool again);

/// For the first line of main. From here to the end of the process SIGINT and SIGTERM call `leave`: while no
/// InterruptionHandler lives the first, otherwise one that comes a second or more after the first. Sooner it is the
/// same request come twice: a terminal's Ctrl-C reaches a launcher and its ranks, and the launcher passes it on.
/// SIGQUIT and SIGKILL still end at once. Lets signals through that InterruptionsBlocked held back.
void leave_on_interruption(Leave leave);

/// While it lives SIGINT and SIGTERM wait, also for a program that this process, or a child forked meanwhile, becomes:
/// until that has called leave_on_interruption. So none is lost, and none kills a program that is only being loaded.
class InterruptionsBlocked {
 public:
  InterruptionsBlocked();
  ~InterruptionsBlocked();
  InterruptionsBlocked(const InterruptionsBlocked&) = delete;
  InterruptionsBlocked& operator=(const InterruptionsBlocked&) = delete;

 private:
  sigset_t previous_{};
};

}  // namespace lockstep

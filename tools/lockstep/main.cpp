#include <unistd.h>

#include <csignal>
#include <string_view>

#include "core/interruption.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"

namespace {

/// In a signal handler.
[[noreturn]] void leave(int number, bool again) {
  const std::string_view text =
      again ? " came again: ended at once; what was not saved yet is lost.\n" : ": ended; there was nothing to save.\n";
  for (const std::string_view part :
       {std::string_view("lockstep: "), std::string_view(number == SIGINT ? "SIGINT" : "SIGTERM"), text})
    if (::write(STDERR_FILENO, part.data(), part.size()) < 0) break;
  ::_exit(static_cast<int>(lockstep::ExitCode::kInterrupted));
}

}  // namespace

int main(int count, char** arguments) {
  lockstep::tool::set_up_memory();
  lockstep::leave_on_interruption(leave);
  // A full disk (or a limit on file sizes) and a closed pipe are errors of a write, with an exit code of their own.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  lockstep::tool::occupy_standard_streams();
  return lockstep::tool::main_of(count, arguments);
}

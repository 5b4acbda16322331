#include <csignal>

#include "tools/lockstep/commands.h"

int main(int count, char** arguments) {
  // A full disk (or a limit on file sizes) and a closed pipe are errors of a write, with an exit code of their own.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  return lockstep::tool::main_of(count, arguments);
}

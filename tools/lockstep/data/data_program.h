#pragma once
#include <string>
#include <vector>

namespace lockstep::tool {

/// The program in Python that makes tokens of texts: beside an installed command, or in the source tree.
std::string data_program();

/// Python for it: LOCKSTEP_PYTHON, else the project's .venv, else python3 of PATH.
std::string data_python();

/// Runs a command (the first is the executable, found in PATH) with our standard streams, and waits for it. Gives its
/// exit code. BadInput if it cannot be started, InternalError if a signal ended it.
int run_and_wait(const std::vector<std::string>& command);

}  // namespace lockstep::tool

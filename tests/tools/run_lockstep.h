#pragma once
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace lockstep {

/// What one run of the binary left behind.
struct Run {
  int code = -1;
  std::string out;
  std::string err;
};

/// Runs a program through the shell in the source tree; `variables` such as "RANK=0 " stand before it.
inline Run run_binary(const std::string& program, const std::string& arguments, const std::string& variables = "") {
  const TemporaryFolder folder;
  const auto command = "cd '" LOCKSTEP_SOURCE_DIR "' && " + variables + "'" + program + "' " + arguments + " >" +
                       folder.file("out") + " 2>" + folder.file("err") + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, file_content(folder.file("out")),
          file_content(folder.file("err"))};
}

inline Run run_lockstep(const std::string& arguments, const std::string& variables = "") {
  return run_binary(LOCKSTEP_BINARY, arguments, variables);
}

/// For what takes its turn with the commit; 1 where there is no history.
inline int count_of_commits() {
  const auto count = run_binary("git", "-C '" LOCKSTEP_SOURCE_DIR "' rev-list --count HEAD");
  return count.code == 0 ? std::stoi(count.out) : 1;
}

}  // namespace lockstep

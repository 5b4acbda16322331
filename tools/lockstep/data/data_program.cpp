#include "tools/lockstep/data/data_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace lockstep::tool {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::exists(path, none);
}

}  // namespace

std::string data_program() {
  const auto installed =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "share/lockstep/data/prepare.py";
  if (is_there(installed)) return installed.string();
  const fs::path in_tree = LOCKSTEP_SOURCE_DIR "/tools/data/prepare.py";
  if (!is_there(in_tree)) fail<BadInput>("neither {} nor {} is there.", installed.string(), in_tree.string());
  return in_tree.string();
}

std::string data_python() {
  if (const char* chosen = std::getenv("LOCKSTEP_PYTHON"); chosen && *chosen) return chosen;
  const fs::path in_tree = LOCKSTEP_SOURCE_DIR "/.venv/bin/python3";
  return is_there(in_tree) ? in_tree.string() : "python3";
}

int run_and_wait(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ); error != 0)
    fail<BadInput>("{} cannot be started: {}. Python 3.8 or later is needed; LOCKSTEP_PYTHON may name it.", command[0],
                   std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  fail<InternalError>("{} {}: ended by signal {}.", command[0], command[1], WTERMSIG(status));
}

}  // namespace lockstep::tool

#include "tools/lockstep/launch_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/error.h"

namespace lockstep::tool {

void add_launch_options(CLI::App& command, LaunchOptions& options) {
  command.footer(
      "Example:\n  lockstep launch -n 4 train jobs/demo.toml\n\n"
      "The mesh of the job must have as many ranks. Signals go to all; if one fails the others end too.");
  command.add_option("-n,--processes", options.processes, "How many")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  command
      .add_option("--grace", options.grace_seconds,
                  "Seconds that others have to write what they have after one failed (4)")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--json", options.json, "The command's --json; how each rank ended is added if one fails")
      ->type_name("FILE");
  command.allow_extras();
}

int launched_from(int count, const char* const* arguments, const std::vector<std::string>& commands) {
  int first = count > 1 && std::string_view(arguments[1]) == "launch" ? 2 : count;
  while (first < count && std::find(commands.begin(), commands.end(), arguments[first]) == commands.end()) ++first;
  return first;
}

LaunchOptions with_command(LaunchOptions launch, const char* const* begin, const char* const* end) {
  if (begin == end) fail<BadInput>("lockstep launch needs a command, for example: lockstep launch -n 4 train JOB.");
  if (launch.processes > 1 && std::string_view(*begin) == "verify")
    fail<BadInput>(
        "lockstep verify simulates its meshes in one process; lockstep launch is for lockstep train --verify.");
  launch.command.assign(begin, end);
  if (!launch.json.empty()) launch.command.insert(launch.command.end(), {"--json", launch.json});
  return launch;
}

}  // namespace lockstep::tool

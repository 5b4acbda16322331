#include "tools/lockstep/launch/launch_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/error.h"

namespace lockstep::tool {

namespace {

void add_restart_options(CLI::App& command, LaunchOptions& options) {
  command
      .add_option("--restarts", options.restarts,
                  "How often a run that has lost a rank goes on from its last checkpoint (docs/processes.md)")
      ->type_name("K")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--min-ranks", options.min_ranks,
                  "With so many ranks left it goes on, on the largest mesh for them (all)")
      ->type_name("M")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  command
      .add_option("--back-after", options.back_after,
                  "Seconds after which the place of a lost rank is used again (0); inf: never")
      ->type_name("SECONDS");
}

void require_restarts_fit(const LaunchOptions& launch) {
  const bool says_more = launch.min_ranks || launch.back_after;
  if (says_more && !launch.restarts)
    fail<BadInput>("{} is about restarts: add --restarts K.", launch.min_ranks ? "--min-ranks" : "--back-after");
  if (!(launch.back_after.value_or(0) >= 0))
    fail<BadInput>("--back-after is {}, must be at least 0, or inf.", *launch.back_after);
  if (launch.min_ranks.value_or(1) > launch.processes)
    fail<BadInput>("--min-ranks {} is more than -n {}.", *launch.min_ranks, launch.processes);
}

}  // namespace

void add_launch_options(CLI::App& command, LaunchOptions& options) {
  command.footer(
      "Example:\n  lockstep launch -n 4 train jobs/demo.toml\n"
      "  lockstep launch -n 4 verify jobs/demo.toml --meshes \"dp_shard=4; pp=2,tp=2\"\n"
      "  lockstep launch -n 4 --min-ranks 2 --restarts 10 train jobs/demo.toml --checkpoint.enable\n\n"
      "The mesh of the job, and each that is verified, must have as many ranks. Signals go to all; if one fails the "
      "others end too.");
  command.add_option("-n,--processes", options.processes, "How many")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  command
      .add_option("--grace", options.grace_seconds,
                  "Seconds that others have to write what they have after one failed (4)")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber);
  add_restart_options(command, options);
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
  require_restarts_fit(launch);
  launch.command.assign(begin, end);
  if (!launch.json.empty()) launch.command.insert(launch.command.end(), {"--json", launch.json});
  return launch;
}

}  // namespace lockstep::tool

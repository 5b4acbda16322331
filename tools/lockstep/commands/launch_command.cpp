#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/interruption.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/commands/launched_ranks.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/flight_report.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

/// The file that the ranks' command writes its result to; empty if it has no --json.
std::string json_file_of(const std::vector<std::string>& command) {
  constexpr std::string_view kOption = "--json";
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == kOption && i + 1 < command.size()) return command[i + 1];
    if (command[i].starts_with(kOption) && command[i].substr(kOption.size()).starts_with('='))
      return command[i].substr(kOption.size() + 1);
  }
  return {};
}

/// Tells a file from the one that was there under its name before.
struct FileIdentity {
  explicit FileIdentity(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return;
    number = status.st_ino;
    time = {status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  }
  bool operator==(const FileIdentity&) const = default;

  uint64_t number = 0;
  std::pair<int64_t, int64_t> time;
};

/// What this run's program wrote, if it came to that, and the ranks.
void add_ranks(const std::string& path, bool is_written, const std::vector<RankStory>& stories) {
  auto result = nlohmann::ordered_json::object();
  if (is_written) result = nlohmann::ordered_json::parse(std::ifstream(path), nullptr, /*allow_exceptions=*/false);
  if (!result.is_object()) result = nlohmann::ordered_json::object();
  result["ranks"] = to_json(stories);
  Output output;
  output.json = path;
  try {
    write_json(output, result);
  } catch (const FileError& error) {  // what ended the ranks says more than this
    print_err("lockstep: {}\n", error.what());
  }
}

/// What happened, for a launch that lost a rank.
void report_loss(const std::vector<RankStory>& stories) {
  print_err("{}", flight_table(stories));
  if (const auto sentence = blame(stories); !sentence.empty()) print_err("lockstep: {}.\n", sentence);
}

}  // namespace

ExitCode run_launch(const LaunchOptions& options) {
  const InterruptionHandler handler;
  const auto json = json_file_of(options.command);
  const FileIdentity before(json);
  LaunchedRanks ranks(options);
  ranks.wait();
  print_err("{}", ranks.reports());
  const auto code = ranks.code();
  if (code == ExitCode::kFine) return code;
  if (ranks.lost_one()) report_loss(ranks.stories());
  if (!json.empty()) add_ranks(json, before != FileIdentity(json), ranks.stories());
  return code;
}

}  // namespace lockstep::tool

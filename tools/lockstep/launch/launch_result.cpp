#include "tools/lockstep/launch/launch_result.h"

#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/flight_report.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

std::string json_file_of(const std::vector<std::string>& command) {
  constexpr std::string_view kOption = "--json";
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == kOption && i + 1 < command.size()) return command[i + 1];
    if (command[i].starts_with(kOption) && command[i].substr(kOption.size()).starts_with('='))
      return command[i].substr(kOption.size() + 1);
  }
  return {};
}

}  // namespace

LaunchResult::LaunchResult(const std::vector<std::string>& command)
    : path_(json_file_of(command)), before_(identity()) {}

LaunchResult::Identity LaunchResult::identity() const {
  struct stat status {};
  if (path_.empty() || ::stat(path_.c_str(), &status) != 0) return {};
  return {status.st_ino, {status.st_mtim.tv_sec, status.st_mtim.tv_nsec}};
}

void LaunchResult::add(const char* name, const nlohmann::ordered_json& value) const {
  if (path_.empty()) return;
  auto result = nlohmann::ordered_json::object();
  if (identity() != before_)
    result = nlohmann::ordered_json::parse(std::ifstream(path_), nullptr, /*allow_exceptions=*/false);
  if (!result.is_object()) result = nlohmann::ordered_json::object();
  result[name] = value;
  Output output;
  output.json = path_;
  try {
    write_json(output, result);
  } catch (const FileError& error) {  // what ended the ranks says more than this
    print_err("lockstep: {}\n", error.what());
  }
}

void report_loss(const std::vector<RankStory>& stories) {
  print_err("{}", flight_table(stories));
  if (const auto sentence = blame(stories); !sentence.empty()) print_err("lockstep: {}.\n", sentence);
}

}  // namespace lockstep::tool

#include "tools/lockstep/reports/fuzz/checked_rules.h"

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/atomic_file.h"

namespace lockstep::tool {
namespace {

std::string today() {
  const auto now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

}  // namespace

int64_t CheckedRules::count(const std::string& op) const {
  const auto found = cases.find(op);
  return is_of_this_code() && found != cases.end() ? found->second : 0;
}

std::string CheckedRules::text() const {
  if (when.empty()) return "checked: never (lockstep fuzz ops --record)";
  if (is_of_this_code()) return fmt::format("checked: these very rules, on {}", when);
  return fmt::format("checked: not since {}: rules {} were checked then, these are {}", when, rules, rules_digest());
}

CheckedRules read_checked(const std::string& path) {
  std::ifstream file(path);
  if (!file) return {};
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  try {
    return {json.at("rules").get<std::string>(), json.at("when").get<std::string>(),
            json.at("cases").get<std::map<std::string, int64_t>>()};
  } catch (const nlohmann::json::exception&) {
    fail<FileError>("{} is not what lockstep fuzz ops --record writes.", path);
  }
}

void record_checked(const std::string& path, const fuzz::SearchResult& result) {
  LOCKSTEP_CHECK(result.failures.empty(), "rules that fail are not checked");
  std::map<std::string, int64_t> cases;
  for (const auto& tally : result.tallies)
    cases[tally.check.substr(0, tally.check.rfind('/'))] += tally.compared + tally.refused;
  const nlohmann::ordered_json json = {{"rules", rules_digest()}, {"when", today()}, {"cases", cases}};
  write_file_atomically(path, json.dump(2) + "\n");
}

}  // namespace lockstep::tool

#include "tools/lockstep/reports/fuzz/fuzz_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace lockstep::tool {
namespace {

/// A program's lines stand below the first.
std::string indented(const std::string& message) {
  std::string text;
  for (const char letter : message) {
    text += letter;
    if (letter == '\n') text += "           ";
  }
  return text;
}

double rate(const fuzz::SearchResult& result) {
  return result.seconds > 0 ? static_cast<double>(result.cases) / result.seconds : 0;
}

}  // namespace

std::string failure_text(const std::string& kind, const fuzz::FoundFailure& failure, const std::string& file) {
  auto text = fmt::format("FAILED  {}\n  what     {}\n  again    lockstep fuzz {} --case '{}'\n", failure.name.check,
                          indented(failure.message), kind, fuzz::to_text(failure.name));
  if (!file.empty()) text += fmt::format("  case     {}\n", file);
  return text;
}

std::string search_text(const std::string& kind, uint64_t seed, int jobs, const fuzz::SearchResult& result) {
  const auto total = result.total();
  return fmt::format(
      "fuzz {} --seed {}: {} cases of {} checks in {:.1f} s on {} {}, {:.0f} a second and core\n"
      "{} comparisons with one device, {} calls refused as they should be, {} cases left out, {} failures\n",
      kind, seed, result.cases, result.tallies.size(), result.seconds, jobs, jobs == 1 ? "core" : "cores",
      rate(result) / jobs, total.compared, total.refused, total.left_out, result.failures.size());
}

nlohmann::ordered_json search_json(const std::string& kind, uint64_t seed, int jobs, const fuzz::SearchResult& result) {
  const auto total = result.total();
  auto failures = nlohmann::ordered_json::array();
  for (const auto& failure : result.failures)
    failures.push_back({{"case", fuzz::to_text(failure.name)}, {"message", failure.message}});
  auto checks = nlohmann::ordered_json::object();
  for (const auto& tally : result.tallies)
    checks[tally.check] = {{"cases", tally.cases}, {"compared", tally.compared}, {"refused", tally.refused}};
  return {{"kind", kind},
          {"seed", seed},
          {"jobs", jobs},
          {"cases", result.cases},
          {"cases_per_second", rate(result)},
          {"seconds", result.seconds},
          {"compared", total.compared},
          {"refused", total.refused},
          {"left_out", total.left_out},
          {"drawn", fmt::format("{:016x}", result.digest)},
          {"failures", failures},
          {"checks", checks}};
}

}  // namespace lockstep::tool

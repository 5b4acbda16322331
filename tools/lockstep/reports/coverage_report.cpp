#include "tools/lockstep/reports/coverage_report.h"

#include <fmt/format.h>

#include <map>

#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::tool {
namespace {

/// Of each family of which rows are missing: "pointwise 40 of 62".
std::vector<std::string> missing_by_family(const std::set<std::string>& reached) {
  std::map<std::string, std::pair<int, int>> families;
  for (const auto& [op, rule] : built_in_rules()->rows()) {
    auto& [lacking, all] = families[rule.family];
    lacking += !reached.contains(op), ++all;
  }
  std::vector<std::string> texts;
  for (const auto& [family, counts] : families)
    if (counts.first > 0) texts.push_back(fmt::format("{} {} of {}", family, counts.first, counts.second));
  return texts;
}

/// A list behind its name, in lines of at most 100 columns.
std::string listed(const char* name, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string text, line = fmt::format("  {:<12}", name);
  for (size_t i = 0; i < items.size(); ++i) {
    const auto item = items[i] + (i + 1 < items.size() ? ";" : "");
    if (line.size() + 1 + item.size() > 100) {
      text += line + "\n";
      line = std::string(14, ' ');
    }
    line += " " + item;
  }
  return text + line + "\n";
}

nlohmann::ordered_json part_json(size_t all, const std::vector<std::string>& lacking) {
  return {{"reached", all - lacking.size()}, {"of", all}, {"missing", lacking}};
}

}  // namespace

std::string coverage_text(const Coverage& coverage) {
  const auto rows = all_rows(), moves = all_moves(), collectives = all_collectives();
  const auto no_rows = missing(rows, coverage.rows), no_moves = missing(moves, coverage.moves),
             no_collectives = missing(collectives, coverage.collectives);
  auto text = fmt::format(
      "\nthese meshes came to {} of {} rows of the op table and {} of {} candidates of theirs, {} of {} kinds of "
      "move,\n"
      "{} of {} collectives; not to\n",
      rows.size() - no_rows.size(), rows.size(), coverage.reached_candidates(), coverage.candidate_count(),
      moves.size() - no_moves.size(), moves.size(), collectives.size() - no_collectives.size(), collectives.size());
  return text + listed("rows", missing_by_family(coverage.rows)) + listed("moves", no_moves) +
         listed("collectives", no_collectives);
}

nlohmann::ordered_json coverage_json(const Coverage& coverage) {
  const auto rows = all_rows(), moves = all_moves(), collectives = all_collectives();
  nlohmann::ordered_json lacking = nlohmann::ordered_json::object();
  for (const auto& [row, all] : coverage.candidates)
    for (const auto& [text, is_reached] : all)
      if (!is_reached) lacking[row].push_back(text);
  auto with_sizes = part_json(collectives.size(), missing(collectives, coverage.collectives));
  with_sizes["group_sizes"] = coverage.group_sizes;
  return {{"rules", part_json(rows.size(), missing(rows, coverage.rows))},
          {"candidates",
           {{"reached", coverage.reached_candidates()}, {"of", coverage.candidate_count()}, {"missing", lacking}}},
          {"moves", part_json(moves.size(), missing(moves, coverage.moves))},
          {"collectives", with_sizes}};
}

}  // namespace lockstep::tool

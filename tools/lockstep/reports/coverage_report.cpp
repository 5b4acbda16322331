#include "tools/lockstep/reports/coverage_report.h"

#include <fmt/format.h>

#include <vector>

namespace lockstep::tool {
namespace {

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
  if (coverage.rows.empty()) return "\nno mesh came to its last step: what this suite reaches is not known\n";
  const auto rows = all_rows(), moves = all_moves(), collectives = all_collectives();
  const auto no_moves = missing(moves, coverage.moves), no_collectives = missing(collectives, coverage.collectives);
  const auto no_rows = gaps_of_rows(coverage), no_candidates = gaps_of_candidates(coverage);
  auto text = fmt::format(
      "\nthese meshes came to {} of {} rows of the op table and {} of {} candidates of theirs, {} of {} kinds of "
      "move,\n"
      "{} of {} collectives; not to\n",
      rows.size() - missing(rows, coverage.rows).size(), rows.size(), coverage.reached_candidates(),
      coverage.candidate_count(), moves.size() - no_moves.size(), moves.size(),
      collectives.size() - no_collectives.size(), collectives.size());
  text += listed("rows", no_rows.items) + listed("candidates", no_candidates.items) + listed("moves", no_moves) +
          listed("collectives", no_collectives);
  return no_rows.are_names && no_candidates.are_names ? text : text + "  all names: --json\n";
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

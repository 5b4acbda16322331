#include "replay/view/timeline_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "replay/view/html.h"
#include "replay/view/page_parts.h"

namespace lockstep::replay {
namespace {

constexpr size_t kFirstRows = 12;

std::string number(uint64_t value) { return count_text(static_cast<int64_t>(value)); }
std::string size(uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

double share(uint64_t part, uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string share_text(uint64_t part, uint64_t whole) { return fmt::format("{:.1f} %", 100 * share(part, whole)); }

/// The row of a cost, or of the time of which nothing is known; `most`: of all rows.
std::string row_of(const Cost& cost, const StepCosts& costs, uint64_t most, bool has_most) {
  auto row = "<tr>" + cell("what", escaped(cost.name)) +
             cell("", bar(cost.is_collective ? "co" : "p1", share(cost.time, most)));
  row += cell("time", time_text(cost.time)) + cell("share", share_text(cost.time, costs.length)) +
         cell("times", number(cost.times)) + cell("bytes", size(cost.bytes));
  if (has_most) row += cell("longest", fmt::format("{}: {}", cost.where, time_text(cost.most)));
  return row + "</tr>\n";
}

std::string unknown_row(const StepCosts& costs, uint64_t most, bool has_most) {
  auto row = "<tr>" + cell("what", "<em>no op, no collective</em>") + cell("", bar("px", share(costs.unknown, most)));
  row += cell("time", time_text(costs.unknown)) + cell("share", share_text(costs.unknown, costs.length)) +
         cell("times", "-") + cell("bytes", "-");
  return row + (has_most ? cell("longest", "-") : "") + "</tr>\n";
}

std::string table_of(const std::string& rows, bool has_most) {
  if (has_most) return table({"what", "", "time", "share", "times", "bytes", "longest"}, rows);
  return table({"what", "", "time", "share", "times", "bytes"}, rows);
}

}  // namespace

std::string cost_tables(const StepCosts& costs, size_t processes) {
  const bool has_most = processes > 1;
  const uint64_t most = std::max(costs.unknown, costs.rows.empty() ? 0 : costs.rows.front().time);
  std::string first, others;
  bool has_unknown = false;
  size_t shown = 0;
  for (const auto& cost : costs.rows) {
    auto& rows = shown < kFirstRows ? first : others;
    if (!has_unknown && costs.unknown > cost.time)
      rows += unknown_row(costs, most, has_most), has_unknown = true, ++shown;
    (shown < kFirstRows ? first : others) += row_of(cost, costs, most, has_most);
    ++shown;
  }
  if (!has_unknown) (shown < kFirstRows ? first : others) += unknown_row(costs, most, has_most), ++shown;
  auto html = table_of(first, has_most);
  if (!others.empty())
    html += fmt::format("<details><summary>{} more, which cost less</summary>\n{}</details>\n", shown - kFirstRows,
                        table_of(others, has_most));
  return html;
}

std::string ranks_table(std::span<const ProcessTimeline> processes) {
  std::string rows;
  for (const auto& process : processes)
    for (const auto* rank : process.ranks) {
      uint64_t received = 0, results = 0;
      for (const auto& piece : rank->pieces) received += piece.bytes;
      for (const auto& result : rank->results) results += result.bytes;
      rows += fmt::format("<tr>{}{}{}{}{}{}</tr>\n", cell("rank", std::to_string(rank->rank)),
                          cell("ran in", process.is_simulation() ? "one process: " + process.name() : "its process"),
                          cell("ops", number(rank->ops.size())), cell("results", size(results)),
                          cell("collectives", number(rank->collectives.size())), cell("received", size(received)));
    }
  return table({"rank", "ran in", "ops", "results", "collectives", "received"}, rows);
}

}  // namespace lockstep::replay

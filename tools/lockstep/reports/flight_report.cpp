#include "tools/lockstep/reports/flight_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lockstep::tool {
namespace {

constexpr const char* kStates[] = {"", "begun", "waiting", "done", "gave up", "disagrees"};

const char* text_of(FlightState state) { return kStates[static_cast<size_t>(state)]; }

/// Its end, which says most.
std::string fit(const std::string& text, size_t width) {
  return text.size() <= width ? text : ".." + text.substr(text.size() - width + 2);
}

std::string row_of(const RankStory& story) {
  const auto* note = story.last();
  if (!note) return fmt::format("{:>4}  none\n", story.rank);
  const auto row = fmt::format("{:>4}  {:>9}  {:<14}  {:<12}  {:<25}  {:<9}  {:<7} {:>5.1f} s", story.rank,
                               note->collective, fit(note->kind, 14), fit(note->axis, 12), fit(note->op, 25),
                               text_of(note->state), fit(fmt::format("{}", fmt::join(note->ranks, ",")), 7),
                               std::clamp(story.ended - note->begun, 0.0, 999.0));
  return row + "\n";
}

nlohmann::ordered_json to_json(const FlightNote& note) {
  return {{"number", note.collective}, {"kind", note.kind}, {"dtype", note.dtype},          {"bytes", note.bytes},
          {"axis", note.axis},         {"op", note.op_id},  {"state", text_of(note.state)}, {"ranks", note.ranks}};
}

}  // namespace

std::string flight_table(const std::vector<RankStory>& stories) {
  std::string rows;
  bool any = false;
  for (const auto& story : stories) {
    rows += row_of(story);
    any |= story.last() != nullptr;
  }
  if (!any) return {};
  return fmt::format("{:>4}  {:<25}  {:<12}  {:<25}  {:<9}  {:<7} {:>7}\n", "rank", "last collective", "on", "of",
                     "state", "ranks", "age") +
         rows;
}

nlohmann::ordered_json to_json(const std::vector<RankStory>& stories) {
  auto ranks = nlohmann::ordered_json::array();
  for (const auto& story : stories) {
    const int exit = story.signal > 0 ? -story.signal : static_cast<int>(story.code);
    ranks.push_back({{"rank", story.rank}, {"exit", exit}, {"error", story.error}});
    if (const auto* note = story.last()) ranks.back()["collective"] = to_json(*note);
  }
  return ranks;
}

}  // namespace lockstep::tool

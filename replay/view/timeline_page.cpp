#include "replay/view/timeline_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "replay/view/html.h"
#include "replay/view/page_parts.h"
#include "replay/view/step_costs.h"
#include "replay/view/step_sections.h"
#include "replay/view/timeline_drawing.h"
#include "replay/view/timeline_tables.h"

namespace lockstep::replay {
namespace {

using Processes = std::vector<ProcessTimeline>;

constexpr const char* kPageStyle = R"(
h1{font-size:1.6em;margin:0 0 4px}h2{font-size:1.2em;margin:26px 0 4px}h1,h2,p{overflow-wrap:anywhere}
.quiet{color:var(--quiet)}summary{cursor:pointer;padding:3px 0}a{color:var(--one)}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:6px 16px;margin:10px 0}
)";

constexpr size_t kMostSections = 24, kMostZoomed = 8;  ///< sections, and processes in each of them
constexpr size_t kPieces = 6, kManyOps = 40;           ///< a section with so many ops is drawn in pieces, too

TimeWindow whole_of(const Processes& processes) {
  uint64_t end = 1;  // a window is not empty
  for (const auto& process : processes) end = std::max(end, process.end());
  return {0, end};
}

std::string received_text(std::span<const StepRecording> ranks) {
  uint64_t least = ~uint64_t{0}, most = 0, all = 0;
  for (const auto& rank : ranks) {
    uint64_t bytes = 0;
    for (const auto& piece : rank.pieces) bytes += piece.bytes;
    least = std::min(least, bytes), most = std::max(most, bytes), all += bytes;
  }
  const auto text = [](uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  if (ranks.size() == 1) return text(all);
  const auto each = least == most ? text(most) : fmt::format("{} to {}", text(least), text(most));
  return fmt::format("{} by each rank, {} by the {} shown", each, text(all), ranks.size());
}

std::string facts(std::span<const StepRecording> ranks, const TimelineHead& head) {
  std::string html = "<dl>\n";
  for (const auto& [name, value] : head.facts) html += fact(name, value);
  return html + fact("received", received_text(ranks)) + fact("ended early", ranks.front().reason) + "</dl>\n";
}

/// What the times are times of, and what nobody has recorded.
std::string notes(std::span<const StepRecording> ranks, const Processes& processes) {
  std::string html;
  const auto note = [&](const std::string& text) { html += "<p>" + escaped(text) + "</p>\n"; };
  for (const auto& process : processes)
    if (process.is_simulation())
      note(fmt::format(
          "One process simulated {}: within each op it did the part of each of them, so the times are those "
          "of all of them together. What one of these ranks alone would take is not recorded.",
          process.name()));
  if (static_cast<size_t>(ranks.front().world) > ranks.size())
    note(
        fmt::format("{} of {} ranks are shown. Where one process simulated them all, the times are those of all; that "
                    "shows when all their recordings are drawn.",
                    ranks.size(), ranks.front().world));
  if (processes.size() > 1)
    note(
        "Each process has a clock of its own, which begins with its step: moments of two processes cannot be compared "
        "to the microsecond.");
  for (const auto& [key, value] : ranks.front().machine)
    if (key == "device" && value.starts_with("cuda"))
      note("The host's times: what it took to hand an op over to the GPU, not what the GPU took, is recorded.");
  note("When the step itself ended is not recorded: the scales end with the last op or collective.");
  return "<div class=\"quiet\">\n" + html + "</div>\n";
}

std::string costs_part(const Processes& processes) {
  const auto costs = costs_of(processes);
  return "<h2>What costs most</h2>\n<p class=\"quiet\">Time of an op: without the ops and collectives that ran inside "
         "it. "
         "A collective lasts until its last piece has arrived, waiting included; one that goes on beside an op counts "
         "in "
         "both. Bytes: of an op's results (a view has none), and of what collectives delivered, on all ranks shown." +
         std::string(processes.size() > 1 ? " Times of all processes are added up." : "") + "</p>\n" +
         cost_tables(costs, processes.size());
}

size_t ops_in(const ProcessTimeline& process, TimeWindow window) {
  return static_cast<size_t>(std::count_if(process.ops.begin(), process.ops.end(), [&](const TimedOp& op) {
    return op.window.begin >= window.begin && op.window.begin < window.end;
  }));
}

std::string pieces(std::span<const ProcessTimeline> processes, TimeWindow window) {
  if (ops_in(processes.front(), window) < kManyOps) return {};
  std::string html;
  for (const auto& piece : pieces_of(window, kPieces)) html += timeline_drawing(processes, piece);
  return fmt::format("<details><summary>in pieces of {}</summary>\n{}</details>\n",
                     part_text(round_part(window.length(), kPieces)), html);
}

std::string section(const StepSection& section, const Processes& processes, uint64_t whole, size_t number) {
  const std::span zoomed(processes.data(), std::min(processes.size(), kMostZoomed));
  const double share = 100 * static_cast<double>(section.window.length()) / static_cast<double>(whole);
  return fmt::format(
      "<details class=\"card\" id=\"section-{}\" open=\"open\"><summary><strong>{}</strong> {}, {:.1f} "
      "%</summary>\n{}{}"
      "</details>\n",
      number, section.name, time_text(section.window.length()), share, timeline_drawing(zoomed, section.window),
      pieces(zoomed, section.window));
}

/// Those that last longest, in the order of the step.
std::vector<StepSection> longest(std::vector<StepSection> sections) {
  std::erase_if(sections, [](const StepSection& each) { return each.window.length() == 0; });
  if (sections.size() <= kMostSections) return sections;
  std::vector<uint64_t> lengths;
  for (const auto& each : sections) lengths.push_back(each.window.length());
  std::nth_element(lengths.begin(), lengths.begin() + kMostSections, lengths.end(), std::greater<>());
  const auto limit = lengths[kMostSections];
  std::erase_if(sections, [&](const StepSection& each) { return each.window.length() <= limit; });
  return sections;
}

std::string drawings(const Processes& processes) {
  const auto whole = whole_of(processes);
  const auto all = sections_of(processes), drawn = longest(all);
  std::string html = "<h2>The whole step</h2>\n" + timeline_legend(processes) + timeline_drawing(processes, whole);
  html += "<h2>Phase by phase</h2>\n";
  if (drawn.size() < all.size()) html += fmt::format("<p>The {} longest of {} parts.</p>\n", drawn.size(), all.size());
  if (processes.size() > kMostZoomed)
    html += fmt::format("<p>The first {} of {} processes.</p>\n", kMostZoomed, processes.size());
  for (size_t i = 0; i < drawn.size(); ++i) html += section(drawn[i], processes, whole.length(), i + 1);
  return html;
}

}  // namespace

std::string timeline_page(std::span<const StepRecording> ranks, const TimelineHead& head) {
  const auto title = head.title.empty() ? "Lockstep timeline" : head.title;
  auto html = page_begin(title, fmt::format("{}{}{}", kPageStyle, kPartsStyle, kTimelineStyle));
  if (ranks.empty()) return html + "<h1>No rank</h1>\n" + std::string(kPageEnd);
  const auto processes = processes_of(ranks);
  html += fmt::format("<h1>{}: step {}, {}</h1>\n", escaped(title), ranks.front().step,
                      time_text(whole_of(processes).length()));
  html += facts(ranks, head) + notes(ranks, processes) + costs_part(processes) + drawings(processes);
  html += "<h2>Rank by rank</h2>\n" + ranks_table(processes);
  html += kPageEnd;
  return html;
}

}  // namespace lockstep::replay

#include "replay/view/timeline_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/collective_kind.h"
#include "core/phase.h"
#include "replay/view/html.h"
#include "replay/view/trace_diff.h"

namespace lockstep::replay {
namespace {

constexpr double kWidth = 1200, kTrack = 22, kLabel = 70;
constexpr size_t kMostBars = 20'000;  ///< of one track; the longest are drawn
constexpr const char* kColours[] = {"#888888", "#4878a8", "#8fb8de", "#d08a3c",
                                    "#6aa84f", "#a64d79", "#7e57c2", "#777777"};
constexpr const char* kCollectiveColour = "#c0392b";

struct Bar {
  double begin, end;  ///< ms
  const char* colour;
  std::string title;
};

double milliseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

std::vector<Bar> op_bars(const StepRecording& recording) {
  std::vector<Bar> bars;
  for (const auto& op : recording.ops)
    bars.push_back({milliseconds(op.begin), milliseconds(op.end), kColours[op.id.phase], text_of(op.id, recording)});
  return bars;
}

std::vector<Bar> collective_bars(const StepRecording& recording) {
  std::vector<Bar> bars;
  for (const auto& collective : recording.collectives)
    bars.push_back({milliseconds(collective.begin), milliseconds(collective.end), kCollectiveColour,
                    fmt::format("{} on {} in {}", kCollectiveNames[collective.kind], recording.names[collective.axis],
                                text_of(collective.id, recording))});
  return bars;
}

std::string track(const std::string& label, std::vector<Bar> bars, double length) {
  std::sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) { return a.end - a.begin > b.end - b.begin; });
  const size_t left_out = bars.size() - std::min(bars.size(), kMostBars);
  bars.resize(bars.size() - left_out);
  auto svg = fmt::format("<svg width=\"{}\" height=\"{}\"><text x=\"0\" y=\"15\" font-size=\"12\">{}</text>",
                         kWidth + kLabel, kTrack, escaped(label));
  for (const auto& bar : bars)
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"2\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{} ({:.3f} ms)</title></rect>\n",
        kLabel + bar.begin / length * kWidth, std::max(0.3, (bar.end - bar.begin) / length * kWidth), kTrack - 4,
        bar.colour, escaped(bar.title), bar.end - bar.begin);
  return svg + "</svg>" + (left_out ? fmt::format("<p>{} shorter ones are not drawn.</p>\n", left_out) : "\n");
}

/// How often and how long, by name, the longest first.
std::string table(const char* what, const std::map<std::string, std::pair<size_t, double>>& rows) {
  std::vector<std::pair<std::string, std::pair<size_t, double>>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
  auto html = fmt::format("<table><tr><th>{}</th><th>times</th><th>ms</th></tr>", what);
  for (const auto& [name, row] : sorted)
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{:.3f}</td></tr>\n", escaped(name), row.first, row.second);
  return html + "</table>\n";
}

std::string tables(const StepRecording& recording) {
  std::map<std::string, std::pair<size_t, double>> ops, collectives;
  const auto add = [](auto& row, uint64_t begin, uint64_t end) {
    ++row.first;
    row.second += milliseconds(std::max(begin, end) - begin);
  };
  for (const auto& op : recording.ops) add(ops[recording.names[op.id.op]], op.begin, op.end);
  for (const auto& c : recording.collectives)
    add(collectives[fmt::format("{} on {}", kCollectiveNames[c.kind], recording.names[c.axis])], c.begin, c.end);
  return fmt::format("<h2>Rank {}: where the time went</h2>", recording.rank) + table("op", ops) +
         table("collective (inside the ops)", collectives);
}

std::string legend() {
  std::string html = "<p>";
  for (size_t phase = 0; phase < std::size(kColours); ++phase)
    html += fmt::format("<span class=\"key\" style=\"background:{}\"></span>{}", kColours[phase], kPhaseNames[phase]);
  return html + fmt::format("<span class=\"key\" style=\"background:{}\"></span>collectives</p>\n", kCollectiveColour);
}

}  // namespace

std::string timeline_page(std::span<const StepRecording> ranks) {
  uint64_t last = 1;
  for (const auto& recording : ranks)
    for (const auto& op : recording.ops) last = std::max(last, op.end);
  const double length = milliseconds(last);
  auto html = page_begin("Lockstep timeline", "");
  html += fmt::format("<h1>Step {}: {:.1f} ms</h1>\n<p>Times are each rank's own, since its step began.</p>\n",
                      ranks.empty() ? 0 : ranks.front().step, length);
  html += legend();
  for (const auto& recording : ranks) {
    html += track(fmt::format("rank {} ops", recording.rank), op_bars(recording), length);
    html += track("comm", collective_bars(recording), length);
  }
  if (!ranks.empty()) html += tables(ranks.front());
  html += kPageEnd;
  return html;
}

}  // namespace lockstep::replay

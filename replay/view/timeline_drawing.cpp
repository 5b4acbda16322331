#include "replay/view/timeline_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "replay/view/html.h"
#include "replay/view/page_parts.h"
#include "replay/view/trace_diff.h"

namespace lockstep::replay {

const char* const kTimelineStyle = R"(
.scroll{overflow-x:auto}svg.timeline{width:100%;min-width:760px;font-size:11px}.grid{stroke:var(--line)}
.tick{fill:var(--quiet)}.p0,.p7,.px{fill:var(--seven);background:var(--seven)}
.p1,.p2{fill:var(--one);background:var(--one)}.p2{opacity:.5}.p5{fill:var(--six);background:var(--six)}
.p3{fill:var(--two);background:var(--two)}.p4{fill:var(--five);background:var(--five)}
.p6{fill:var(--three);background:var(--three)}.co{fill:var(--four);background:var(--four)}
)";

namespace {

constexpr double kLeft = 120, kRight = 1190, kWidth = 1200;
constexpr double kAxis = 20, kOpLane = 16, kCollectiveLane = 11, kBetween = 2, kGap = 9;
constexpr double kNarrow = 0.8;  ///< bars that are no wider than this cannot be told apart
constexpr size_t kMostTicks = 10, kMostLanes = 4;

/// The class of a phase; of a number that is none, which a recording may hold, a class of its own.
std::string phase_style(uint8_t phase) { return phase < std::size(kPhaseNames) ? fmt::format("p{}", phase) : "px"; }

/// One track: its bars come by begin, and each lane is drawn from left to right.
class Track {
 public:
  Track(TimeWindow window, double top, double height, const char* many)
      : window_(window), top_(top), height_(height), many_(many) {}

  /// `title`: makes the text of a bar that is drawn alone.
  template <class Title>
  void add(TimeWindow bar, size_t lane, const std::string& style, const Title& title) {
    const bool is_over = bar.end <= window_.begin && bar.begin < window_.begin;
    if (is_over || bar.begin >= window_.end) return;
    const TimeWindow seen{std::max(bar.begin, window_.begin), std::min(bar.end, window_.end)};
    lane = std::min(lane, kMostLanes - 1);
    lanes_ = std::max(lanes_, lane + 1);
    auto& run = runs_[lane];
    const bool is_narrow = width_of(bar.length()) < kNarrow;
    const bool is_near = run.count > 0 && x_of(seen.begin) - x_of(run.window.end) < kNarrow;
    if (!is_narrow || !is_near || run.style != style) {
      flush(run, lane);
      run = {seen, style, title(), 0, 0};
    }
    run.window.end = std::max(run.window.end, seen.end);
    ++run.count;
    run.together += bar.length();
    if (!is_narrow) flush(run, lane);
  }

  size_t lanes() const { return lanes_; }

  std::string finish() {
    for (size_t lane = 0; lane < kMostLanes; ++lane) flush(runs_[lane], lane);
    return std::move(svg_);
  }

 private:
  /// Bars that are drawn as one.
  struct Run {
    TimeWindow window;
    std::string style, title;
    size_t count = 0;
    uint64_t together = 0;
  };

  double width_of(uint64_t length) const {
    return (kRight - kLeft) * static_cast<double>(length) / static_cast<double>(window_.length());
  }
  double x_of(uint64_t time) const { return kLeft + width_of(time - window_.begin); }

  void flush(Run& run, size_t lane) {
    if (run.count == 0) return;
    const double x = x_of(run.window.begin), width = std::max(x_of(run.window.end) - x, kNarrow);
    const auto title = run.count == 1 ? run.title
                                      : fmt::format("{} {}, {} together", count_text(static_cast<int64_t>(run.count)),
                                                    many_, time_text(run.together));
    svg_ += fmt::format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"><title>{}</title></rect>\n", run.style,
        x, top_ + static_cast<double>(lane) * height_, width, height_ - kBetween, escaped(title));
    run = {};
  }

  TimeWindow window_;
  double top_, height_;
  const char* many_;
  std::array<Run, kMostLanes> runs_;
  size_t lanes_ = 1;
  std::string svg_;
};

std::string label(double y, const std::string& text) {
  return fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", y, escaped(text));
}

std::string when(TimeWindow window) {
  return fmt::format("{}, from {:.3f} ms on", time_text(window.length()), static_cast<double>(window.begin) / 1e6);
}

/// A process's ops and collectives from `top` on, which becomes what is below them.
std::string tracks(const ProcessTimeline& process, TimeWindow window, double& top) {
  Track ops(window, top, kOpLane, "short ops");
  for (const auto& op : process.ops)
    ops.add(op.window, op.lane, phase_style(op.id.phase),
            [&] { return text_of(op.id, process.recording()) + ": " + when(op.window); });
  auto svg = label(top + 11, process.name() + " ops") + ops.finish();
  top += kOpLane * static_cast<double>(ops.lanes());
  Track collectives(window, top, kCollectiveLane, "short collectives");
  for (const auto& each : process.collectives)
    collectives.add(each.window, each.lane, "co", [&] {
      return fmt::format("{} in {}: {}, {} received", each.name, text_of(each.id, process.recording()),
                         when(each.window), bytes_text(static_cast<double>(each.bytes)));
    });
  svg += label(top + 8, "collectives") + collectives.finish();
  top += kCollectiveLane * static_cast<double>(collectives.lanes()) + kGap;
  return svg;
}

std::string axis(TimeWindow window, double bottom) {
  std::string svg;
  for (const auto& tick : ticks_of(window, kMostTicks)) {
    const double x =
        kLeft + (kRight - kLeft) * static_cast<double>(tick.at - window.begin) / static_cast<double>(window.length());
    svg += fmt::format(
        "<path class=\"grid\" d=\"M{:.2f} {}V{}\"/><text class=\"tick\" x=\"{:.2f}\" y=\"11\" "
        "text-anchor=\"{}\">{}</text>\n",
        x, kAxis - 5, bottom, x, x > kRight - 20 ? "end" : "middle", tick.label);
  }
  return svg;
}

}  // namespace

std::string timeline_drawing(std::span<const ProcessTimeline> processes, TimeWindow window) {
  double bottom = kAxis;
  std::string svg;
  for (const auto& process : processes) svg += tracks(process, window, bottom);
  return fmt::format(
      "<div class=\"scroll\"><svg class=\"timeline\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"ops and collectives over time\">\n{}{}</svg></div>\n",
      kWidth, bottom, axis(window, bottom - kGap + kBetween), svg);
}

std::string timeline_legend(std::span<const ProcessTimeline> processes) {
  std::array<bool, std::size(kPhaseNames)> occurs{};
  bool has_collectives = false;
  for (const auto& process : processes) {
    has_collectives |= !process.collectives.empty();
    for (const auto& op : process.ops)
      if (op.id.phase < occurs.size()) occurs[op.id.phase] = true;
  }
  std::string html = "<p>";
  for (size_t phase = 0; phase < occurs.size(); ++phase)
    if (occurs[phase]) html += fmt::format("<span class=\"key p{}\"></span>{}\n", phase, kPhaseNames[phase]);
  if (has_collectives) html += "<span class=\"key co\"></span>collectives\n";
  return html + "</p>\n";
}

}  // namespace lockstep::replay

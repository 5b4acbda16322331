#include "tools/lockstep/reports/curves/curve_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "replay/view/html.h"
#include "replay/view/page_parts.h"
#include "replay/view/time_axis.h"
#include "tools/lockstep/reports/curves/curve_numbers.h"
#include "tools/lockstep/reports/page/divergence_plot.h"

namespace lockstep::tool {

const char* const kChartStyle = R"(
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,460px),1fr));gap:8px 32px}
.chart h2{font-size:1.1em;margin:14px 0 2px}.chart svg.plot{max-width:none}.plot .axis{stroke:var(--quiet)}
)";

namespace {

constexpr double kWidth = 360, kLeft = 58, kRight = 352, kTop = 10, kBase = 180, kBottom = 214;
constexpr size_t kMostPoints = 400, kMostDots = 60, kMostTicks = 5;

/// From what is drawn to where it is drawn.
struct Frame {
  int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
  double low = std::numeric_limits<double>::infinity(), high = -low, tick = 1;

  double x_of(int64_t step) const {
    if (first == last) return (kLeft + kRight) / 2;
    return kLeft + (kRight - kLeft) * static_cast<double>(step - first) / static_cast<double>(last - first);
  }
  double y_of(double value) const { return kBase - (value - low) / (high - low) * (kBase - kTop); }
};

/// 1, 2 or 5 times a power of ten, so that `most` of them are at least `range`.
double round_tick(double range, size_t most) {
  const double least = range / static_cast<double>(most);
  const double decade = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * decade >= least) return factor * decade;
  return 10 * decade;
}

Frame frame_of(const Chart& chart) {
  Frame frame;
  for (const auto& line : chart.lines)
    for (const auto& [step, value] : *line.curve) {
      frame.first = std::min(frame.first, step), frame.last = std::max(frame.last, step);
      if (std::isfinite(value)) frame.low = std::min(frame.low, value), frame.high = std::max(frame.high, value);
    }
  if (frame.first > frame.last) frame.first = frame.last = 1;
  if (frame.low > frame.high) frame.low = 0, frame.high = 1;
  if (chart.from_zero) frame.low = std::min(frame.low, 0.0);
  const double flat = std::max(std::abs(frame.high), 1e-12);  // one value alone stands in the middle of some
  if (frame.high - frame.low < 1e-9 * flat) frame.low -= chart.from_zero ? 0 : flat / 2, frame.high += flat / 2;
  frame.tick = round_tick(frame.high - frame.low, kMostTicks);
  frame.low = std::floor(frame.low / frame.tick) * frame.tick;
  frame.high = std::ceil(frame.high / frame.tick) * frame.tick;
  return frame;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

std::string scale(const Frame& frame, Unit unit) {
  std::string svg;
  const auto ticks = std::llround((frame.high - frame.low) / frame.tick);
  for (int64_t i = 0; i <= ticks; ++i) {
    const double value = frame.low + static_cast<double>(i) * frame.tick, y = frame.y_of(value);
    svg += fmt::format("<path class=\"{}\" d=\"M{} {:.1f}H{}\"/>\n", i == 0 ? "axis" : "grid", kLeft, y, kRight);
    svg += text_at(kLeft - 5, y + 3, "end", value_text(std::abs(value) < frame.tick / 2 ? 0 : value, unit));
  }
  const int64_t marks = std::min<int64_t>(frame.last - frame.first, 4);
  for (int64_t i = 0; i <= marks; ++i) {
    const int64_t step = frame.first + (marks > 0 ? (frame.last - frame.first) * i / marks : 0);
    svg += text_at(frame.x_of(step), kBase + 14, "middle", std::to_string(step));
  }
  return svg + text_at((kLeft + kRight) / 2, kBottom - 4, "middle", "step");
}

std::string drawn(const CurveLine& line, size_t number, const Frame& frame, Unit unit) {
  const auto points = thinned(*line.curve, kMostPoints);
  std::string path, dots;
  bool is_gap = true;
  for (const auto& [step, value] : points) {
    if (const bool is_there = std::isfinite(value); !is_there) {
      is_gap = true;
      continue;
    }
    const double x = frame.x_of(step), y = frame.y_of(value);
    path += fmt::format("{}{:.1f} {:.1f}", is_gap ? "M" : "L", x, y);
    is_gap = false;
    if (points.size() <= kMostDots)
      dots += fmt::format(
          "<circle class=\"dot l{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"><title>{}, step {}: {}</title></circle>\n",
          number, x, y, replay::escaped(line.name), step, value_text(value, unit));
  }
  return path.empty() ? dots : fmt::format("<path class=\"line l{}\" d=\"{}\"/>\n{}", number, path, dots);
}

std::string numbers_table(const Chart& chart) {
  std::string rows;
  for (const auto& line : chart.lines) {
    const auto numbers = numbers_of(*line.curve);
    const auto at = [&](const std::optional<std::pair<int64_t, double>>& point) {
      return point ? fmt::format("{} at {}", value_text(point->second, chart.unit), point->first) : "none";
    };
    rows += "<tr>" + replay::cell("line", replay::escaped(line.name)) + replay::cell("first", at(numbers.first)) +
            replay::cell("last", at(numbers.last)) + replay::cell("lowest", at(numbers.lowest)) +
            replay::cell("highest", at(numbers.highest)) + "</tr>\n";
  }
  return "<details><summary>Numbers</summary>\n" + replay::table({"line", "first", "last", "lowest", "highest"}, rows) +
         "</details>\n";
}

/// What the drawing says, for those who do not see it.
std::string description(const Chart& chart) {
  auto text = chart.title + " by step";
  for (const auto& line : chart.lines)
    if (const auto numbers = numbers_of(*line.curve); numbers.first)
      text += fmt::format("; {}: from {} to {}", line.name, value_text(numbers.first->second, chart.unit),
                          value_text(numbers.last->second, chart.unit));
  return text;
}

}  // namespace

std::string value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::kCount:
      return std::abs(value) < 100 ? fmt::format("{:.3g}", value) : replay::count_text(std::llround(value));
    case Unit::kBytes:
      return value < 0 ? "-" + replay::bytes_text(-value) : replay::bytes_text(value);
    case Unit::kSeconds:
      return value < 0 ? fmt::format("{:.3g} s", value)
                       : replay::time_text(static_cast<uint64_t>(std::llround(value * 1e9)));
    case Unit::kShare:
      return fmt::format("{:.3g}%", 100 * value);
    case Unit::kNumber:
      break;
  }
  return fmt::format("{:.4g}", value);
}

std::string chart_html(const Chart& chart) {
  LOCKSTEP_CHECK(!chart.lines.empty() && chart.lines.size() <= kMostPlotLines);
  const auto frame = frame_of(chart);
  auto html = fmt::format(
      "<section class=\"chart\"><h2>{}</h2>\n<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\">\n",
      replay::escaped(chart.title), kWidth, kBottom, replay::escaped(description(chart)));
  html += scale(frame, chart.unit);
  std::vector<PlotLine> names;
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    html += drawn(chart.lines[i], i, frame, chart.unit);
    names.push_back({chart.lines[i].name, {}});
  }
  return html + "</svg>\n" + plot_legend(names) + numbers_table(chart) + "</section>\n";
}

}  // namespace lockstep::tool

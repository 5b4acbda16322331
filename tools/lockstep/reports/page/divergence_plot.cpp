#include "tools/lockstep/reports/page/divergence_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "replay/view/html.h"
#include "tools/lockstep/reports/page/differences.h"

namespace lockstep::tool {

const char* const kPlotStyle = R"(
.plot{width:100%;max-width:620px;font-size:10px}.plot .grid{stroke:var(--line)}.plot .floor{stroke:var(--good)}
.plot .bound{stroke:var(--bad);stroke-dasharray:2 2}
.line{fill:none;stroke-width:1.8}.dot{stroke-width:0}
.l0{stroke:var(--one);fill:var(--one)}.l1{stroke:var(--two);fill:var(--two);stroke-dasharray:6 3}
.l2{stroke:var(--three);fill:var(--three);stroke-dasharray:2 2}
.l3{stroke:var(--four);fill:var(--four);stroke-dasharray:8 3 2 3}
.l4{stroke:var(--five);fill:var(--five);stroke-dasharray:4 2}.l5{stroke:var(--six);fill:var(--six);stroke-dasharray:1 2}
.l6{stroke:var(--seven);fill:var(--seven)}path.line{fill:none}
@media(max-width:700px){.plot{font-size:12px}}
.legend span{display:inline-block;margin-right:16px}.legend svg{display:inline;width:26px;height:8px;margin-right:5px}
)";

namespace {

constexpr double kWidth = 360, kLeft = 46, kRight = 350, kTop = 12, kLeast = 168, kFloor = 188, kBottom = 226;
constexpr int kLowest = -16, kHighest = 4;  // decades
constexpr size_t kMostPoints = 400, kMostDots = 60;
using Points = std::vector<std::pair<int64_t, double>>;

double y_of(double difference) {
  if (difference <= 0) return kFloor;
  return kLeast - height_of(difference) * (kLeast - kTop);
}

/// The worst of each few, at most kMostPoints.
Points thinned(const Points& points) {
  const size_t each = (points.size() + kMostPoints - 1) / kMostPoints;
  if (each <= 1) return points;
  Points result;
  for (size_t i = 0; i < points.size(); i += each) {
    auto worst = points[i];
    for (size_t k = i; k < std::min(i + each, points.size()); ++k)
      if (is_worse(points[k].second, worst.second)) worst = points[k];
    result.push_back(worst);
  }
  return result;
}

/// The steps of all lines, from left to right.
struct Steps {
  int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();

  explicit Steps(std::span<const PlotLine> lines) {
    for (const auto& line : lines)
      for (const auto& point : line.points) first = std::min(first, point.first), last = std::max(last, point.first);
    if (first > last) first = last = 1;
  }
  double x_of(int64_t step) const {
    if (first == last) return (kLeft + kRight) / 2;
    return kLeft + 8 + (kRight - kLeft - 16) * static_cast<double>(step - first) / static_cast<double>(last - first);
  }
};

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

std::string rule_at(double y, const char* name) {
  return fmt::format("<path class=\"{}\" d=\"M{} {:.1f}H{}\"/>\n", name, kLeft, y, kRight);
}

std::string scale(const Steps& steps, double tolerance) {
  std::string svg;
  for (int decade = kLowest; decade <= kHighest; decade += 4) {
    const double y = y_of(std::pow(10.0, decade));
    svg += rule_at(y, "grid") + text_at(kLeft - 5, y + 3, "end", decade == 0 ? "1" : fmt::format("1e{}", decade));
  }
  svg += rule_at(kFloor, "floor") + text_at(kLeft - 5, kFloor + 3, "end", "equal");
  if (tolerance > 0)
    svg += rule_at(y_of(tolerance), "bound") + text_at(kRight, y_of(tolerance) - 11, "end", "most that is allowed");
  const int64_t ticks = std::min<int64_t>(steps.last - steps.first, 4);
  for (int64_t i = 0; i <= ticks; ++i) {
    const int64_t step = steps.first + (ticks > 0 ? (steps.last - steps.first) * i / ticks : 0);
    svg += text_at(steps.x_of(step), kFloor + 16, "middle", std::to_string(step));
  }
  return svg + text_at((kLeft + kRight) / 2, kBottom - 6, "middle", "step");
}

std::string difference_text(double difference) {
  if (!std::isfinite(difference)) return "not finite";
  return difference > 0 ? fmt::format("{:.1e}", difference) : "equal";
}

std::string drawn(const PlotLine& line, size_t number, const Steps& steps) {
  const auto points = thinned(line.points);
  std::string path, dots;
  for (const auto& [step, difference] : points) {
    const double x = steps.x_of(step), y = y_of(difference);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
    if (points.size() > kMostDots) continue;
    dots += fmt::format(
        "<circle class=\"dot l{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}, step {}: {}</title></circle>\n",
        number, x, y, replay::escaped(line.name), step, difference_text(difference));
  }
  return fmt::format("<path class=\"line l{}\" d=\"{}\"/>\n{}", number, path, dots);
}

}  // namespace

std::string plot_legend(std::span<const PlotLine> lines) {
  std::string html = "<p class=\"legend\">";
  for (size_t i = 0; i < lines.size(); ++i)
    html += fmt::format("<span><svg viewBox=\"0 0 26 8\"><path class=\"line l{}\" d=\"M0 4H26\"/></svg>{}</span>\n", i,
                        replay::escaped(lines[i].name));
  return html + "</p>\n";
}

double height_of(double difference) {
  if (!std::isfinite(difference)) return 1;
  if (difference <= 0) return 0;
  return std::clamp((std::log10(difference) - kLowest) / (kHighest - kLowest), 0.0, 1.0);
}

std::string divergence_plot(std::span<const PlotLine> lines, double tolerance) {
  LOCKSTEP_CHECK(lines.size() <= kMostPlotLines);
  const Steps steps(lines);
  auto svg = fmt::format(
      "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"relative difference by step\">\n", kWidth,
      kBottom);
  svg += scale(steps, tolerance);
  for (size_t i = 0; i < lines.size(); ++i)
    if (!lines[i].points.empty()) svg += drawn(lines[i], i, steps);
  return svg + "</svg>\n" + plot_legend(lines);
}

}  // namespace lockstep::tool

#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::tool {

/// How much something differs at each step: relative differences by ascending step.
struct PlotLine {
  std::string name;
  std::vector<std::pair<int64_t, double>> points;
};

/// Lines that can be told apart.
inline constexpr size_t kMostPlotLines = 7;

/// Differences by step as an SVG and its legend: from 1e-16 to 1e4 on a logarithmic scale, above a line for no
/// difference at all. What is larger or not finite stands at the top, what is smaller but not 0 at 1e-16. Of many steps
/// the worst of each few is drawn. `tolerance`: a line of its own, or 0. REQUIRES: at most kMostPlotLines lines.
std::string divergence_plot(std::span<const PlotLine> lines, double tolerance);

/// What each line of a plot is called, beside a sample of it.
std::string plot_legend(std::span<const PlotLine> lines);

/// Where a difference stands on that scale: 0 for 1e-16 or less, 1 for 1e4 or more.
double height_of(double difference);

/// The CSS of its classes.
extern const char* const kPlotStyle;

}  // namespace lockstep::tool

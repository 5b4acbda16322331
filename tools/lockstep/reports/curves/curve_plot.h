#pragma once
#include <span>
#include <string>

#include "tools/lockstep/reports/curves/run_curves.h"

namespace lockstep::tool {

/// How numbers of a chart are written.
enum class Unit { kNumber, kCount, kBytes, kSeconds, kShare };

/// "3.14", "1,936", "312 MB", "260 ms", "71%".
std::string value_text(double value, Unit unit);

/// A line of a chart. At most kMostPlotLines of them can be told apart (divergence_plot.h, whose colours and dashes
/// these are).
struct CurveLine {
  std::string name;
  const StepCurve* curve;
};

struct Chart {
  std::string title;
  Unit unit = Unit::kNumber;
  bool from_zero = false;  ///< whether the scale begins at 0
  std::vector<CurveLine> lines;
};

/// The chart as an SVG with its legend and, to be unfolded, its numbers: first, last, lowest, highest of each line. A
/// step without a number is a gap. Of many steps the lowest and the highest of each few are drawn. REQUIRES: a line at
/// least.
std::string chart_html(const Chart& chart);

/// The CSS beside that of divergence_plot.h and page_parts.h.
extern const char* const kChartStyle;

}  // namespace lockstep::tool

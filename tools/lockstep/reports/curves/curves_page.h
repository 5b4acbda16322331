#pragma once
#include <span>
#include <string>

#include "tools/lockstep/reports/curves/run_curves.h"

namespace lockstep::tool {

/// Runs that a page can hold: lines that can be told apart.
inline constexpr size_t kMostRuns = 7;

/// Gives each run the shortest name that tells it from the others.
void name_runs(std::span<RunCurves> runs);

/// One file without scripts: the runs, and a chart for each group of their numbers, of several runs for each number.
/// Fields that docs/metrics.md does not have are left out. REQUIRES: a run at least, kMostRuns at most, with names.
std::string curves_page(std::span<const RunCurves> runs);

}  // namespace lockstep::tool

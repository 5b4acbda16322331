#pragma once
#include <optional>

#include "tools/lockstep/reports/curves/run_curves.h"

namespace lockstep::tool {

/// Points of a curve, of its finite numbers; none where there is no such number.
struct CurveNumbers {
  std::optional<std::pair<int64_t, double>> first, last, lowest, highest;
};
CurveNumbers numbers_of(const StepCurve& curve);

/// The mean of its finite numbers.
std::optional<double> mean_of(const StepCurve& curve);

/// The most memory so far: of a run on a GPU that says it, the GPU's.
const StepCurve& peak_memory(const RunCurves& run);

/// At most `most` points that look the same: of each few that follow each other the lowest and the highest, and one
/// without a number if there is one, in their order. REQUIRES: most >= 3.
StepCurve thinned(const StepCurve& curve, size_t most);

}  // namespace lockstep::tool

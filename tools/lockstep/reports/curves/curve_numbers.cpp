#include "tools/lockstep/reports/curves/curve_numbers.h"

#include <algorithm>
#include <cmath>

namespace lockstep::tool {

CurveNumbers numbers_of(const StepCurve& curve) {
  CurveNumbers numbers;
  for (const auto& point : curve) {
    if (!std::isfinite(point.second)) continue;
    if (!numbers.first) numbers.first = point;
    numbers.last = point;
    if (!numbers.lowest || point.second < numbers.lowest->second) numbers.lowest = point;
    if (!numbers.highest || point.second > numbers.highest->second) numbers.highest = point;
  }
  return numbers;
}

std::optional<double> mean_of(const StepCurve& curve) {
  double sum = 0, count = 0;
  for (const auto& [step, value] : curve)
    if (std::isfinite(value)) sum += value, ++count;
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

const StepCurve& peak_memory(const RunCurves& run) {
  const auto& of_gpu = run.curve("gpu_peak_memory_bytes");
  return numbers_of(of_gpu).last ? of_gpu : run.curve("peak_memory_bytes");
}

StepCurve thinned(const StepCurve& curve, size_t most) {
  if (curve.size() <= most) return curve;
  const size_t each = (3 * curve.size() + most - 1) / most;
  StepCurve result;
  for (size_t begin = 0; begin < curve.size(); begin += each) {
    const StepCurve part(curve.begin() + static_cast<int64_t>(begin),
                         curve.begin() + static_cast<int64_t>(std::min(begin + each, curve.size())));
    const auto numbers = numbers_of(part);
    const auto gap = std::ranges::find_if(part, [](const auto& point) { return !std::isfinite(point.second); });
    StepCurve kept;
    if (numbers.lowest) kept.push_back(*numbers.lowest);
    if (numbers.highest && numbers.highest != numbers.lowest) kept.push_back(*numbers.highest);
    if (gap != part.end()) kept.push_back(*gap);
    std::ranges::sort(kept, {}, &std::pair<int64_t, double>::first);
    result.insert(result.end(), kept.begin(), kept.end());
  }
  return result;
}

}  // namespace lockstep::tool

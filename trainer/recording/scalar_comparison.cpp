#include "trainer/recording/scalar_comparison.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace lockstep::trainer {
namespace {

template <class Scalars>
std::vector<std::string> names_of(const Scalars& scalars) {
  std::vector<std::string> names;
  for (const auto& scalar : scalars) names.emplace_back(scalar.name);
  return names;
}

void compare(const replay::RecordedScalar& recorded, double now, ScalarComparison& comparison) {
  if (std::bit_cast<uint64_t>(now) == recorded.bits) return;
  const auto then = std::bit_cast<double>(recorded.bits);
  comparison.different.push_back(fmt::format("{}: recorded {} ({:#018x}), now {} ({:#018x})", recorded.name, then,
                                             recorded.bits, now, std::bit_cast<uint64_t>(now)));
  comparison.relative.push_back(std::abs(now - then) / std::max(std::abs(now), std::abs(then)));
}

}  // namespace

std::vector<StepScalar> with_next_rate(std::span<const StepScalar> reported, const LearningRateSchedule& schedule,
                                       int64_t step) {
  std::vector<StepScalar> scalars(reported.begin(), reported.end());
  scalars.push_back({"next_learning_rate", schedule.learning_rate(step + 1)});
  return scalars;
}

ScalarComparison compare_scalars(const replay::StepRecording& recording, std::span<const StepScalar> scalars) {
  ScalarComparison comparison;
  if (!recording.complete) return comparison;
  const auto then = names_of(recording.scalars), now = names_of(scalars);
  if (then != now) {
    comparison.different.push_back(
        fmt::format("numbers of the step: recorded {}, now {}", fmt::join(then, " "), fmt::join(now, " ")));
    comparison.relative.push_back(std::numeric_limits<double>::infinity());
  }
  for (const auto& recorded : recording.scalars)
    for (const auto& scalar : scalars)
      if (scalar.name == recorded.name) compare(recorded, scalar.value, comparison);
  return comparison;
}

}  // namespace lockstep::trainer

#pragma once
#include <array>

#include "trainer/forecast/step_time.h"

namespace lockstep::trainer::forecast {

/// A step that was run on one rank.
struct MeasuredStep {
  Workload workload;
  Settings settings;
  double seconds;
};

/// The hardware whose shares of products, attention and elements make forecasts of these steps what was measured, as
/// far as hardware.h lets each be so; where products or attention reach more than operations_per_second, that was
/// measured too low, and becomes what they reach. The steps must differ in what they are made of.
Hardware fitted(Hardware hardware, const std::array<MeasuredStep, 3>& steps);

}  // namespace lockstep::trainer::forecast

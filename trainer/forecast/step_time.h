#pragma once
#include "trainer/forecast/hardware.h"
#include "trainer/forecast/workload.h"

namespace lockstep::trainer::forecast {

/// Seconds of a step, by what they are spent on.
struct TimeForecast {
  double computing = 0;  ///< forward, backward and what is run again
  double tensor = 0;     ///< collectives of tp, which computing waits for
  double context = 0;    ///< of cp
  double experts = 0;    ///< of ep, as well
  double transfers = 0;  ///< between stages
  double bubble = 0;     ///< of the pipeline
  double data = 0;       ///< gathers and reductions of dp_shard and dp_replicate that computing does not hide
  double optimizer = 0;

  double step() const { return computing + tensor + context + experts + transfers + bubble + data + optimizer; }
};

TimeForecast time_of(const Workload& workload, const Settings& settings, const Hardware& hardware);

/// Model FLOPs utilization: the share of all ranks' peak.
double utilization(const Workload& workload, const Settings& settings, const Hardware& hardware, double step_seconds);

}  // namespace lockstep::trainer::forecast

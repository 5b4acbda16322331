#pragma once
#include "trainer/forecast/hardware.h"
#include "trainer/forecast/workload.h"

/// Seconds of what a rank computes.
namespace lockstep::trainer::forecast {

/// A microbatch of one layer, forward, backward and what is run again.
double layer_seconds(const LayerSizes& layer, const Workload& workload, const Settings& settings,
                     const Hardware& hardware);
/// Of the head and the loss.
double head_seconds(const Workload& workload, const Settings& settings, const Hardware& hardware);
/// The optimizer's step.
double update_seconds(const Workload& workload, const Settings& settings, const Hardware& hardware);

}  // namespace lockstep::trainer::forecast

#pragma once
#include <functional>
#include <string>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench forecast`: steps on one to eight processes of this machine beside what `lockstep plan`'s model says
/// of them, in milliseconds; ours: the forecast, peer: the step; the ratio is theirs.
///
/// Fitted are the shares of products, attention and elements to three steps on one process (fit_*), what cores do at
/// once to such steps on all of them, bandwidth and latency to an all-gather of 16 MiB and one of 8 bytes between two;
/// the other rows were not used.
///
/// Rows whose names fit `patterns`; `report` gets them as they come. `file`: the hardware, for lockstep plan
/// --hardware, goes there; empty: nowhere. Throws FileError.
void measure_forecast(const std::string& patterns, double seconds, const std::string& file,
                      const std::function<void(const BenchRow&)>& report);

}  // namespace lockstep::bench

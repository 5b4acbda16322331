#pragma once
#include "trainer/forecast/workload.h"

namespace lockstep::trainer::forecast {

/// Bytes of the rank that has most: of one with a first stage's activations and a last one's logits.
struct MemoryForecast {
  double state = 0;  ///< parameters and AdamW's moments
  double gradients = 0;
  double gathered = 0;     ///< parameters of others, and gradients before they are reduced
  double activations = 0;  ///< of all microbatches that wait for their backward
  double logits = 0;       ///< and their gradient

  /// At a step's most: before gradients are there, or when all are.
  double peak = 0;
};

MemoryForecast memory_of(const Workload& workload, const Settings& settings);

}  // namespace lockstep::trainer::forecast

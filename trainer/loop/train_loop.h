#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/launch/rendezvous.h"
#include "trainer/metrics/metrics.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {

/// What a finished (or interrupted) training run gives.
struct TrainOutcome {
  std::vector<StepMetrics> steps;
  std::string state_digest;           ///< over all parameters and optimizer state, the same on every mesh
  std::vector<std::string> findings;  ///< texts of differences that verification found
  std::string interrupted_by;         ///< "SIGINT", or empty; the state was saved
  std::string saved_to;               ///< folder of the last checkpoint, or empty
};

/// What the caller hears while it runs.
struct TrainEvents {
  std::function<void(const StepMetrics&)> on_step = [](const StepMetrics&) {};
  std::function<void(int64_t, const StepCheck&)> on_check = [](int64_t, const StepCheck&) {};
  std::function<void(const std::string&)> on_note = [](const std::string&) {};
};

/// Trains a resolved job on its mesh: data, schedule, steps, checks (verify.enable), checkpoints, metrics file. Stops
/// at the first finding. Throws Inconsistency when a step's loss or gradient is not finite, naming the first op that
/// gave it.
///
/// Of several processes each calls it, on the same job; all give the same outcome, and rank 0's writes the files.
TrainOutcome train(const Job& job, const TrainEvents& events, const Processes& processes = {});

}  // namespace lockstep::trainer

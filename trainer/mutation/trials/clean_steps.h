#pragma once
#include <span>

#include "trainer/mutation/mutant_classes.h"

namespace lockstep::trainer {

/// What verification says of steps without a fault.
struct CleanSteps {
  int64_t steps = 0, meshes = 0;
  int64_t cases = 0;   ///< ops and moves that were compared, each by itself (mode ops)
  int64_t values = 0;  ///< that steps were compared by
  int64_t alarms = 0;  ///< steps that raised one
};

/// `steps` of each setup under canonical numerics, an eighth as many under native ones.
CleanSteps run_clean_steps(std::span<const Setup> setups, int64_t steps);

}  // namespace lockstep::trainer

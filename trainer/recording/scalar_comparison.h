#pragma once
#include <span>
#include <string>
#include <vector>

#include "replay/format/recording.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/schedule.h"

namespace lockstep::trainer {

/// What is recorded of a step's numbers: those that it reports, then the learning rate of the step after it.
std::vector<StepScalar> with_next_rate(std::span<const StepScalar> reported, const LearningRateSchedule& schedule,
                                       int64_t step);

/// How the numbers of a step compare with those that were recorded.
struct ScalarComparison {
  std::vector<std::string> different;  ///< "loss: recorded 2.5 (0x...), now 2.25 (0x...)"
  std::vector<double> relative;        ///< differences, of the same; infinite where there is nothing to subtract

  bool agrees() const { return different.empty(); }
};

/// Bits, and the numbers themselves: the same names in the same order. Of a step that ended early there are none.
ScalarComparison compare_scalars(const replay::StepRecording& recording, std::span<const StepScalar> scalars);

}  // namespace lockstep::trainer

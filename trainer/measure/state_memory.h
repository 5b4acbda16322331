#pragma once
#include <cstdint>

#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// Bytes of the ranks that live in this process, at rest, by what they are for.
struct StateMemory {
  int64_t parameters = 0;
  int64_t gradients = 0;  ///< of a step, as the optimizer takes them: as large as what is trained
  int64_t optimizer = 0;
};

StateMemory memory_of(const TrainingState& state);

}  // namespace lockstep::trainer

#pragma once
#include "core/digest/digest.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// Of the state as it is stored (stored_tensors.h): names, places and values of all elements. Equal on every mesh, in
/// one process or many. Each process reads its own shards, then all add up 16 bytes: a collective. Of what several
/// ranks hold alike one copy counts.
Digest state_digest(const TrainingState& state);

}  // namespace lockstep::trainer

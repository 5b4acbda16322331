#pragma once
#include <span>
#include <string>

#include "core/digest/digest.h"
#include "trainer/optim/parameter_state.h"
#include "trainer/state/held_shards.h"

namespace lockstep::trainer {

/// Of the state as it is stored (stored_tensors.h): names, places and values of all elements. Equal on every mesh, in
/// one process or many. Each process reads its own shards, then all add up 16 bytes: a collective. Of what several
/// ranks hold alike one copy counts.
Digest state_digest(const TrainingState& state);

/// The part of one process in it. Any thread may call it.
Digest digest_of_held(std::span<const HeldShard> shards);

/// The whole, of the texts of all processes' parts.
Digest sum_of_parts(std::span<const std::string> parts);

}  // namespace lockstep::trainer

#pragma once
#include <span>
#include <string>

#include "trainer/optim/optimizer.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// Which copies are compared. What drifts in optimizer state shows in the parameters after the next update.
enum class Copies { kParameters, kAll };

/// How what several ranks hold alike differs: tensors of which copies of a cut lie on several ranks, and `numbers`,
/// which each process computed for itself. Empty if all are the same, bit by bit. A collective of 32 bytes from each
/// rank, with the same answer on all; the digests are of each rank's own shards. Only where something differs more is
/// sent, to name the tensor, the ranks and the worst element.
std::string replica_difference(const TrainingState& state, std::span<const StepScalar> numbers,
                               Copies copies = Copies::kAll);

}  // namespace lockstep::trainer

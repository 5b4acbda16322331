#pragma once
#include "consistency/comparison.h"

namespace lockstep {

/// Compares what a step of a run under native numerics gave (`run`), its losses, gradients and optimizer state, with
/// what the same step gives in double (`exact`), by what the same step in double gives with roundings (`shaken`:
/// Roundings).
///
/// Of each rank's part of a tensor the distance to `exact` may be as long as that of `shaken`, times what chance may
/// make of that (largest_ratio_of_lengths()). The loss and the gradient norm follow: means of losses are no further
/// apart than the losses, norms no further than the gradients, but for the roundings of the sums themselves; a scale
/// for clipping follows the norm. The number of valid tokens and what else the optimizer is told have to be equal.
/// `exact` and `shaken` live here, whole. All parts of a tensor that live here are compared together as well: of few
/// elements chance says little.
///
/// Losses of tokens are compared where both have the same microbatches, and every rank has them finished. Parameters
/// are not: where an optimizer divides by what is near 0, chance rules a few elements. Updates are compared as ops
/// (OpCheck::Updates).
Comparison compare_within_roundings(const StepRecord& exact, const StepRecord& shaken, const StepRecord& run);

}  // namespace lockstep

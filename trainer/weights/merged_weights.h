#pragma once
#include <memory>

#include "trainer/weights/weight_source.h"

namespace lockstep::trainer {

/// The weights of a source with its changes of low rank in them (models/low_rank.h): tensors of the model alone, W' in
/// the place of each W that has a change. Sums are canonical: the same bits on every machine. BadInput where the source
/// has no changes, or tensors of them that do not fit the weights.
std::unique_ptr<WeightSource> merged(std::unique_ptr<WeightSource> source);

}  // namespace lockstep::trainer

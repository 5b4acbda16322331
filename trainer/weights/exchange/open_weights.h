#pragma once
#include <memory>
#include <string>

#include "trainer/weights/weight_source.h"

namespace lockstep::trainer {

/// Weights in a folder: a checkpoint of Lockstep's, what transformers saves, or of a `model` that is given what
/// torch.distributed.checkpoint saves, which does not say its model. BadInput for anything else, naming the checkpoints
/// that a folder of them holds.
std::unique_ptr<WeightSource> open_weights(const std::string& folder, const ModelSection* model = nullptr);

/// Weights that are a model by themselves: with changes of low rank merged in (merged()), where there are any; with
/// `averages` as their averages are (open_averages()).
std::unique_ptr<WeightSource> open_model(const std::string& folder, bool averages);

}  // namespace lockstep::trainer

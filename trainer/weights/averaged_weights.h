#pragma once
#include <memory>
#include <string>

#include "trainer/weights/weight_source.h"

namespace lockstep::trainer {

/// The weights of a checkpoint as their averages are (optimizer.ema_decay); of those that were not trained, themselves.
/// BadInput where the checkpoint has no averages.
std::unique_ptr<WeightSource> open_averages(const std::string& folder);

}  // namespace lockstep::trainer

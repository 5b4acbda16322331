#pragma once
#include <functional>
#include <memory>

#include "trainer/mutation/mutant.h"
#include "trainer/optim/optimizer.h"

namespace lockstep::trainer {

/// An optimizer that takes another number than it was given, in the steps that `is_active` says.
std::unique_ptr<Optimizer> with_other_number(std::unique_ptr<Optimizer> right, const Mutant& mutant,
                                             std::function<bool(int64_t step)> is_active, int64_t& changes);

/// A number of step `step` as the mutant leaves it. `given`: those of the steps before, by step.
double other_number(const Mutant& mutant, int64_t step, double value, std::map<int64_t, double>& given);

}  // namespace lockstep::trainer

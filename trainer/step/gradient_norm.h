#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/optim/optimizer.h"

namespace lockstep::trainer {

/// The global norm of gradients of one mesh: the square root of the sum of the squares of all elements.
///
/// Canonical numerics: of each gradient the exact maximum a, then the integers rint(x * 2^(27 - E)) with a <= 2^E,
/// whose squares are summed exactly; the totals are added in float64, in the order given. NaN or an infinity gives NaN.
/// Otherwise: sums of squares in float64, added in rank order. 0 in a run without values.
double gradient_norm(const std::vector<at::Tensor>& gradients);

/// Calls Optimizer::measure() of all trainable parameters, and adds the root of the mean square of all elements that it
/// returns to the scalars, as kMeasuredRoot; nothing where it returns nothing. `gradients`: of the trainable
/// parameters, in their order.
void add_measured_root(const Optimizer& optimizer, const TrainingState& state, const std::vector<at::Tensor>& gradients,
                       std::vector<StepScalar>& scalars);

}  // namespace lockstep::trainer

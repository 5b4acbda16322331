#pragma once
#include <memory>

#include "trainer/optim/optimizer.h"

namespace lockstep::trainer {

/// `optimizer`, which also keeps an exponential moving average of each trainable parameter (Polyak and Juditsky, 1992,
/// with weights that decay): the initial value at first, then after each step
///   average = decay average + (1 - decay) parameter
/// each operation rounded. It is one more slot, "average", and the last.
std::unique_ptr<Optimizer> with_average(std::unique_ptr<Optimizer> optimizer, double decay);

/// What evaluation and export are to read of a parameter, in its layout: its average where the job keeps one
/// (optimizer.ema_decay), the parameter itself where not, or where it is frozen. Not a copy.
const at::Tensor& averaged_value(const ParameterState& parameter);

}  // namespace lockstep::trainer

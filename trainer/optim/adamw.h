#pragma once
#include <memory>

#include "trainer/optim/optimizer.h"

namespace lockstep::trainer {

/// AdamW (Loshchilov and Hutter, 2019, Algorithm 2, decoupled decay): keeps the mean and the mean square of gradients.
std::unique_ptr<Optimizer> make_adamw(const Job& job);

}  // namespace lockstep::trainer

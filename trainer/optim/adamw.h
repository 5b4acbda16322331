#pragma once
#include <memory>

#include "trainer/optim/optimizer.h"

namespace lockstep::trainer {

/// AdamW (Loshchilov and Hutter, 2019, Algorithm 2, decoupled decay): keeps the mean and the mean square of gradients.
std::unique_ptr<Optimizer> make_adamw(const Job& job);

/// Adam (Kingma and Ba, 2015, Algorithm 1), whose weight decay is that of the loss: decay x parameter is added to the
/// gradient, after clipping. Without decay it is AdamW without decay, bit by bit.
std::unique_ptr<Optimizer> make_adam(const Job& job);

}  // namespace lockstep::trainer

#pragma once
#include <memory>

#include "trainer/optim/optimizer.h"

namespace lockstep::trainer {

/// Stochastic gradient descent as torch.optim.SGD has it (no dampening): with gradient g, parameter p, learning rate r,
/// decay d and momentum u,
///   g' = g + d p;  m = u m + g';  p = p - r m
/// and with optimizer.nesterov (Sutskever et al., 2013, in the form without a look ahead) p = p - r (g' + u m), in this
/// order, each operation rounded. Without momentum p = p - r g', and nothing is kept.
std::unique_ptr<Optimizer> make_sgd(const Job& job);

}  // namespace lockstep::trainer

#pragma once
#include <memory>

#include "trainer/optim/optimizer.h"

namespace lockstep::trainer {

/// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, Algorithm 2): with gradient g, momentum m,
/// parameter p, learning rate r and decay d
///   c = beta1 m + (1 - beta1) g;  p = p (1 - r d) - r sign(c);  m = beta2 m + (1 - beta2) g
/// in this order, each operation rounded; the sign of 0 is 0. Keeps the momentum alone.
std::unique_ptr<Optimizer> make_lion(const Job& job);

}  // namespace lockstep::trainer

#pragma once
#include <memory>

#include "trainer/optim/optimizer.h"

namespace lockstep::trainer {

/// Muon (Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024): with gradient G, momentum M,
/// parameter P, learning rate r, decay d and momentum's share u (optimizer.momentum, 0.95 without it)
///   M = u M + G;  P = P (1 - r d) - r sqrt(max(1, m / n)) orthogonalised(G + u M)
/// for parameters [m, n] whose settings say so (parameter_settings.h). Each tensor that a fused parameter is stored as
/// is made orthogonal by itself: bits do not depend on what a model fuses. All other parameters are AdamW's.
///
/// Every rank gathers G + u M and makes it orthogonal whole: what it costs is that gather, and the same work
/// everywhere.
std::unique_ptr<Optimizer> make_muon(const Job& job);

}  // namespace lockstep::trainer

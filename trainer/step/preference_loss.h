#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep::trainer {

/// Direct preference optimization (Rafailov et al., 2023, arXiv 2305.18290, equation 7): of each pair
///   -log sigmoid(beta ((log p(chosen) - log q(chosen)) - (log p(rejected) - log q(rejected))))
/// where p is the model that is trained and q the one that it began as. `losses` and `reference` are -log of their
/// tokens' probabilities, 0 where nothing is learned: [rows, length], rows 2k chosen, 2k + 1 rejected. Gives [rows /
/// 2].
at::Tensor preference_losses(const at::Tensor& losses, const at::Tensor& reference, double beta);

}  // namespace lockstep::trainer

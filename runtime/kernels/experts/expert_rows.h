#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

/// Tokens of experts as packed rows, on plain tensors of any device. Cells are [sample, expert, position]; `present`,
/// bool [b, e, l], says which have a row, and rows [n, ...] are those, in the order of the cells. `experts` [b, l, k]
/// (int64) says which experts each token chose, in its order: each at most once, below 0 none. A rank's experts begin
/// at `first`.
namespace lockstep::kernels {

struct ExpertRows {
  at::Tensor rows, present;
};

/// x [b, l, w] -> a row of each token for each of `count` experts that it chose, times the choice's weight [b, l, k] if
/// there are any.
ExpertRows expert_rows(const at::Tensor& x, const at::Tensor& experts, const std::optional<at::Tensor>& weights,
                       int64_t first, int64_t count);

/// rows [n, w] -> [b, l, w]: of each token the sum of its rows, times their weights if there are any, one choice after
/// the other from +0, each product and each sum rounded; in fp32 for 16-bit rows, rounded once.
at::Tensor expert_sums(const at::Tensor& rows, const at::Tensor& present, const at::Tensor& experts,
                       const std::optional<at::Tensor>& weights);

/// rows [n, w], x [b, l, w] -> [b, l, k, w]: of each choice its row times x, element by element, 0 where it has none;
/// in fp32 for 16-bit rows. (The gradient of a weight is its sum.)
at::Tensor expert_factors(const at::Tensor& rows, const at::Tensor& present, const at::Tensor& x,
                          const at::Tensor& experts);

}  // namespace lockstep::kernels

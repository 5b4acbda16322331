#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

/// Mixtures of experts (Shazeer et al., "Outrageously Large Neural Networks", 2017): ops of Lockstep's own, in the
/// dispatcher's namespace `mesh` as those of mesh_ops.h, on plain tensors and on sharded ones.
///
/// `experts` [b, l, k] (int64) says which experts each token chose, in its order, each at most once; below 0: none, a
/// token that an expert has no room for. What experts take and give is [b, e, l, ...], a row for each sample, expert
/// and position. On a mesh only rows that were chosen are stored (Packing): [dp_shard=S(0)] has all experts' rows of a
/// rank's samples, and redistribute() to [dp_shard=G(1)] is the all-to-all that brings a rank all rows of its experts.
/// On a plain tensor all are there, 0 where none was chosen.
namespace lockstep::mesh_ops {

/// x [b, l, w] -> [b, count, l, w], times the choice's weight [b, l, k] if weights are given. Differentiable in both.
/// Throws BadInput where a token chose an expert twice, or one that is not there.
at::Tensor expert_rows(const at::Tensor& x, const at::Tensor& experts, const std::optional<at::Tensor>& weights,
                       int64_t count);

/// rows [b, e, l, w] -> [b, l, w]: of each token the sum of its rows, times their weights if there are any: one choice
/// after the other from +0, in fp32 for 16-bit rows, rounded once. All experts' rows must be where the token is.
/// Differentiable in rows and weights.
at::Tensor expert_sums(const at::Tensor& rows, const at::Tensor& experts, const std::optional<at::Tensor>& weights);

/// rows [b, e, l, i], weight [e, o, i] -> [b, e, l, o]: each row times its expert's matrix. Differentiable; of the
/// weight's gradient, a sum over samples and positions, absent rows add nothing.
at::Tensor expert_linear(const at::Tensor& rows, const at::Tensor& weight);

// What their derivatives are made of.

/// rows [b, e, l, w], x [b, l, w] -> [b, l, k, w]: of each choice its row times x, in fp32 for 16-bit rows.
at::Tensor expert_factors(const at::Tensor& rows, const at::Tensor& x, const at::Tensor& experts);
/// gradient [b, e, l, o], rows [b, e, l, i] -> [e, o, i], or of each sample, [b, e, o, i].
at::Tensor expert_weight_gradient(const at::Tensor& gradient, const at::Tensor& rows);
at::Tensor expert_sample_weight_gradient(const at::Tensor& gradient, const at::Tensor& rows);

}  // namespace lockstep::mesh_ops

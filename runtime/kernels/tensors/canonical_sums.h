#pragma once
#include <ATen/core/Tensor.h>

#include "runtime/kernels/sums/ordered_sum_loops.h"

/// Canonical numerics on plain CPU tensors: sums along the tree (sum_tree.h), and what is built of them. 16-bit inputs
/// are widened to fp32 first; sums stay in the accumulation dtype (fp32, or fp64 for fp64).
namespace lockstep::kernels {

using at::Tensor;

/// Which elements of a label are here.
struct Summands {
  SumTree tree;
  int64_t first, count;

  static Summands all(const SumTree& tree) { return {tree, 0, tree.size}; }
  bool whole() const { return first == 0 && count == tree.size; }
};

/// The sum over dimension `dim` of x: [nodes, other dimensions...].
Tensor ordered_sum(const Tensor& x, int64_t dim, const Summands& summands);

/// A sum that is not cut: its one node, or zero where there was nothing to add.
Tensor only_node(const Tensor& nodes);

/// logits [..., v], shift [...] -> [nodes, ...].
Tensor ordered_exponential_sum(const Tensor& logits, const Tensor& shift, const Summands& summands);

/// g, x [batch, ..., d], r [batch, ...] -> [nodes, batch, d], the sum over everything between.
Tensor ordered_norm_gradient(const Tensor& g, const Tensor& x, const Tensor& r, const Summands& summands);

/// gradient [samples * length, width] (or [samples, length, width]), tokens alike without width -> [nodes, rows,
/// width].
Tensor ordered_table_gradient(const Tensor& gradient, const Tensor& tokens, const Summands& samples, int64_t length,
                              int64_t first_row, int64_t rows);

}  // namespace lockstep::kernels

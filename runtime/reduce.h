#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "runtime/kernels/sum_tree.h"
#include "runtime/placement.h"

namespace lockstep {

/// The one place that adds across ranks: combines `nodes` (equal sizes and dtypes, in rank order) along a fixed tree,
/// the left half holding the largest power of two below the count. The result is a new tensor. avg divides once, at
/// the root.
at::Tensor reduce(std::span<const at::Tensor> nodes, Reduction reduction);

/// One node of an ordered sum.
struct OrderedNode {
  SumNode place;
  at::Tensor value;
};

/// The same for an ordered sum: joins what can be joined and stacks the rest, [nodes, sizes...], left to right. A sum
/// of nothing is one node of zeros.
at::Tensor reduce(const SumTree& tree, std::span<const OrderedNode> nodes, const at::TensorOptions& options,
                  at::IntArrayRef sizes);

/// Makes `shard` a neutral summand (0) or factor (1); max, min and avg are idempotent over equal values and keep
/// theirs.
void fill_with_neutral(at::Tensor& shard, Reduction reduction);

}  // namespace lockstep

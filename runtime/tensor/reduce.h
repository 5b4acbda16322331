#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "runtime/tensor/placement.h"

namespace lockstep {

/// The one place that adds across ranks, but for ordered sums (kernels/join_nodes.h): combines `nodes` (equal sizes and
/// dtypes, in rank order) along a fixed tree, the left half holding the largest power of two below the count. The
/// result is a new tensor. avg divides once, at the root.
at::Tensor reduce(std::span<const at::Tensor> nodes, Reduction reduction);

/// Makes `shard` a neutral summand (0) or factor (1); max, min and avg are idempotent over equal values and keep
/// theirs.
void fill_with_neutral(at::Tensor& shard, Reduction reduction);

}  // namespace lockstep

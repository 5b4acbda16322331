#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "runtime/kernels/sums/sum_tree.h"

namespace lockstep {

/// Which nodes of a sum are rounded before they are added: those of the `levels` levels below the root, and the root,
/// if `levels` is above 0. They add up in `dtype`, so that what crosses ranks there is as wide as the result.
struct RoundedLevels {
  int64_t levels = 0;
  c10::ScalarType dtype = c10::kFloat;

  bool rounds(const SumTree& tree, const SumNode& node) const { return levels > 0 && node.height >= lowest(tree); }
  /// The height of the lowest nodes that are rounded.
  int lowest(const SumTree& tree) const { return std::max(tree.height - static_cast<int>(levels), 0); }
};

/// One node of an ordered sum.
struct OrderedNode {
  SumNode node;
  at::Tensor value;
};

/// The one place that adds the nodes of an ordered sum: joins what can be joined and stacks the rest, [nodes,
/// sizes...], left to right. A sum of nothing is one node of zeros. The result has the nodes' dtype, or that of the
/// rounding where all of it is rounded.
at::Tensor join_nodes(const SumTree& tree, std::span<const OrderedNode> nodes, const at::TensorOptions& options,
                      at::IntArrayRef sizes, const RoundedLevels& rounding = {});

}  // namespace lockstep

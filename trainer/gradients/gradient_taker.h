#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace lockstep::trainer {

class BlockReductions;

/// Who takes the gradients of what blocks gather, each as soon as it is reduced over dp_shard.
struct GradientTaker {
  /// Of the microbatch, on all ranks, if gradients that are sums over so many are taken as nodes of the tree over
  /// samples, laid out by layout_of_nodes(); 0: none are.
  int64_t samples = 0;
  /// Of a step. Under canonical numerics a gradient that 16 bits have rounded is refused where there are several.
  int64_t microbatches = 1;
  std::function<void(const at::Tensor& leaf, const at::Tensor& nodes)> take_nodes = {};
  /// A gradient in the leaf's dtype; what is not summed over other axes stays so. Empty: autograd gets it.
  std::function<void(const at::Tensor& leaf, const at::Tensor& gradient)> take = {};
  /// Where reductions are while other blocks compute; borrowed. Null: each is waited for. REQUIRES: take.
  BlockReductions* underway = nullptr;
};

}  // namespace lockstep::trainer

#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "trainer/sharding/gather_order.h"
#include "trainer/sharding/replica_sums.h"
#include "trainer/sharding/split_backward.h"

namespace lockstep::trainer {

/// The parameters of one block, brought together for computation and given back afterwards.
///
/// One all-gather for the whole block. In backward the gradients go to the parameters' dp_shard cut with one
/// reduce-scatter; what is Partial over other axes stays so, for whoever accumulates to reduce once (all in fp32 or
/// wider).
class GatheredParameters {
 public:
  /// Differentiable. Gathers by `order`. `taker` takes the gradients that are unfinished sums over samples, as nodes
  /// that are not joined: their parameters get none from autograd.
  GatheredParameters(const std::vector<at::Tensor>& parameters, GatherRecipe recipe, std::shared_ptr<GatherOrder> order,
                     NodeTaker taker = {});

  const std::vector<at::Tensor>& tensors() const { return tensors_; }

  /// Computation is cut off from the parameters: what it finds of gradients goes to them when `split` finishes.
  void cut(SplitBackward& split) { tensors_ = split.cut(std::move(tensors_)); }

  /// Frees the gathered bytes; the first use of any of them (in backward) gathers all again, with one all-gather.
  void evict();

 private:
  struct Source;
  std::shared_ptr<Source> source_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace lockstep::trainer

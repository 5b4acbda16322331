#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "trainer/gradients/gradient_taker.h"
#include "trainer/sharding/gather_order.h"
#include "trainer/sharding/split_backward.h"

namespace lockstep::trainer {

/// The parameters of one block, brought together for computation and given back afterwards.
///
/// One all-gather for the whole block. In backward the gradients go to the parameters' dp_shard cut with one
/// reduce-scatter (BlockReduction).
class GatheredParameters {
 public:
  /// Differentiable. Gathers by `order`. `taker` takes the gradients, perhaps later than in the backward that makes
  /// them: autograd then has none for the parameters.
  GatheredParameters(const std::vector<at::Tensor>& parameters, GatherRecipe recipe, std::shared_ptr<GatherOrder> order,
                     GradientTaker taker = {});

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

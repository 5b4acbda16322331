#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "models/module.h"

namespace lockstep::trainer {

/// What a step's tokens chose, and what it makes of the biases that balance experts (Wang et al., "Auxiliary-loss-free
/// load balancing", 2024): counts over the global batch are integers, so that they are the same on every mesh.
class ExpertBalance {
 public:
  /// `counts` [count], int64, of the microbatch that runs; parts of a sum are added up by finish(). Counted once,
  /// however often it is told.
  void add(const models::Parameter& bias, const at::Tensor& counts, double rate);

  /// Adds to each bias `rate` times the sign of how far its expert is below the mean, less the mean of those signs.
  /// Starts the next step.
  void finish();
  /// Forgets a step that did not come to its end.
  void forget() { layers_.clear(); }

 private:
  struct Layer {
    const models::Parameter* bias;
    double rate;
    std::map<int64_t, at::Tensor> counts;  ///< by microbatch
  };
  Layer& layer_of(const models::Parameter& bias, double rate);

  std::vector<Layer> layers_;  ///< in the order of their first use: the same on every rank
};

/// `x`; its gradient brings `weight` for each of `losses` along.
at::Tensor with_gradient_of(const at::Tensor& x, const at::Tensor& losses, double weight);

}  // namespace lockstep::trainer

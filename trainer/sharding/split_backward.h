#pragma once
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <vector>

#include "runtime/deferred/deferred_gradients.h"

namespace lockstep::trainer {

/// The backward of one microbatch in two parts: what gives gradients of inputs, and what gives those of parameters.
///
/// The forward computes with leaves in place of what was gathered of the parameters, so that a backward ends there.
/// Under a scope of deferred() it leaves out the products that give linear maps' weights their gradients; finish()
/// computes those, and takes all gradients of leaves on to the parameters. Nothing here keeps what was gathered.
class SplitBackward {
 public:
  /// Leaves with the same bytes, a bucket: finish() takes their gradients on together. What asks for no gradient stays
  /// as it is.
  std::vector<at::Tensor> cut(std::vector<at::Tensor> gathered);

  DeferredGradients& deferred() { return deferred_; }

  /// The second part, bucket by bucket. Throws BadInput under canonical numerics for a weight that was used by a linear
  /// map and by something else: on one device its gradients might be added in another order.
  void finish();

 private:
  struct Cut {
    torch::autograd::Edge gathered;        ///< where its gradient goes
    std::shared_ptr<at::Tensor> gradient;  ///< of the leaf, so far
    size_t bucket;
    bool was_deferred = false;
  };

  void take(Cut& cut, const at::Tensor& gradient);
  void finish_bucket(size_t bucket);

  std::vector<Cut> cuts_;
  size_t buckets_ = 0;
  DeferredGradients deferred_;
};

}  // namespace lockstep::trainer

#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "runtime/context/deferred_gradients.h"

namespace lockstep::trainer {

/// The backward of one microbatch in two parts: what gives gradients of inputs, and what gives those of parameters.
///
/// The forward computes with leaves in place of what was gathered of the parameters, so that a backward ends there.
/// Under a scope of deferred() it leaves out the products that give linear maps' weights their gradients; finish()
/// computes those, and takes all gradients of leaves on to the parameters.
class SplitBackward {
 public:
  /// Leaves with the same bytes; what asks for no gradient stays as it is.
  std::vector<at::Tensor> cut(std::vector<at::Tensor> gathered);

  DeferredGradients& deferred() { return deferred_; }

  /// The second part. BadInput for a weight that was used by a linear map and by something else: on one device its
  /// gradients might be added in another order.
  void finish();

 private:
  struct Cut {
    at::Tensor gathered, leaf;
    std::shared_ptr<at::Tensor> gradient;  ///< of the leaf, from a backward; undefined before
  };

  Cut& cut_of(const at::Tensor& leaf);

  std::vector<Cut> cuts_;
  DeferredGradients deferred_;
};

}  // namespace lockstep::trainer

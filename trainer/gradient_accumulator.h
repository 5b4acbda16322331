#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "runtime/kernels/sum_tree.h"
#include "runtime/layout.h"
#include "runtime/numerics.h"

namespace lockstep::trainer {

/// Collects the gradients of a step's microbatches, in microbatch order, and owns when they are reduced.
///
/// Each parameter's gradient is taken from autograd as soon as it is complete for a microbatch; autograd itself never
/// adds two.
///
/// Native: microbatches are added up in their order, and axes that are still Partial are reduced once a step, in
/// finish(), one collective per axis. Canonical: each microbatch is reduced when it ends, and is then one node of the
/// tree over the step's microbatches.
class GradientAccumulator {
 public:
  /// Attaches to the parameters (leaves that require gradients), which must outlive it.
  GradientAccumulator(std::vector<at::Tensor> parameters, int64_t microbatches, Numerics numerics);
  ~GradientAccumulator();
  GradientAccumulator(const GradientAccumulator&) = delete;
  GradientAccumulator& operator=(const GradientAccumulator&) = delete;

  /// To be called after the backward of each of the step's microbatches.
  void end_microbatch();

  /// The step's gradients in the parameters' layouts, zero where there was none; starts the next step.
  std::vector<at::Tensor> finish();

 private:
  void take(size_t parameter);
  struct Hook;

  std::vector<at::Tensor> zeros_or(const std::vector<at::Tensor>& gradients) const;
  std::vector<Layout> layouts() const;

  std::vector<at::Tensor> parameters_;
  SumTree tree_;  ///< over microbatches
  Numerics numerics_;
  std::vector<at::Tensor> sums_;  ///< of the step (native) or of this microbatch (canonical)
  std::vector<SumJoiner<at::Tensor>> joiners_;
  int64_t microbatch_ = 0;
};

}  // namespace lockstep::trainer

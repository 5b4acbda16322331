#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "runtime/layout.h"

namespace lockstep::trainer {

/// Collects the gradients of a step's microbatches, in microbatch order, and owns when they are reduced.
///
/// Each parameter's gradient is taken from autograd as soon as it is complete for a microbatch; autograd itself never
/// adds two. Sums over axes that are still Partial are reduced once a step, in finish(), one collective per axis.
class GradientAccumulator {
 public:
  /// Attaches to the parameters (leaves that require gradients), which must outlive it.
  explicit GradientAccumulator(std::vector<at::Tensor> parameters);
  ~GradientAccumulator();
  GradientAccumulator(const GradientAccumulator&) = delete;
  GradientAccumulator& operator=(const GradientAccumulator&) = delete;

  /// The step's gradients in the parameters' layouts, zero where there was none; starts the next step.
  std::vector<at::Tensor> finish();

 private:
  void take(size_t parameter);
  struct Hook;

  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> sums_;
};

}  // namespace lockstep::trainer

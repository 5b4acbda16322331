#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/tensor/mesh.h"

namespace lockstep::trainer {

/// left + right, where an undefined tensor adds nothing.
at::Tensor sum_of(const at::Tensor& left, const at::Tensor& right);

/// The microbatches of one gradient under canonical numerics, added up on each rank along the tree over all samples:
/// its upper levels are a tree over replicas x microbatches, of which a replica has a part. No communication.
class ReplicaSums {
 public:
  ReplicaSums(const Mesh& mesh, int64_t microbatches);

  /// `gradient` is unfinished over the replicas alone, if there are several; undefined: nothing to add. Throws BadInput
  /// where it was summed over several replicas before. REQUIRES: it is no formal sum of several gradients.
  void add(int64_t microbatch, const at::Tensor& gradient);

  /// The step's gradient, unfinished over replicas; undefined if there was none. REQUIRES: all microbatches were added.
  /// Starts anew.
  at::Tensor finish();

 private:
  int64_t replica(size_t index) const;
  at::Tensor node(const at::Tensor& gradient, size_t index) const;
  at::Tensor joined(size_t index, const at::Tensor& like);
  at::Tensor joined(const at::Tensor& like);

  const Mesh& mesh_;
  int axis_;  ///< dp_replicate, or -1
  int64_t microbatches_;
  SumTree tree_;
  std::vector<SumJoiner<at::Tensor>> joiners_;  ///< per local rank
  at::Tensor like_;                             ///< the last that was defined
};

}  // namespace lockstep::trainer

#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/kernels/sums/sum_tree.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/spec.h"

/// A microbatch's gradient as nodes of the tree over the step's samples, one from each data-parallel rank. Where their
/// number is no power of two, what stands side by side in a microbatch may be no siblings in that tree: ranks exchange
/// nodes as they do to reduce, and keep them apart until the step's tree joins them (ReplicaSums).
namespace lockstep::trainer {

/// The nodes [dp_replicate x dp_shard, sizes...] of a gradient [sizes...], each still where it was summed: nothing
/// moves. Undefined if it is not an unfinished sum over that many samples, of which every data-parallel rank has a
/// part: one that was summed before, say, or a formal sum. REQUIRES: each part is one node.
at::Tensor nodes_of(const at::Tensor& gradient, int64_t samples);

/// Where nodes go whose gradient is to lie like `parameter`: a replica's to all of its ranks, cut as that is.
Layout layout_of_nodes(const Layout& parameter);

/// left + right, where an undefined tensor adds nothing.
at::Tensor sum_of(const at::Tensor& left, const at::Tensor& right);

/// The microbatches of one gradient under canonical numerics, added up on each rank along the tree over all samples:
/// its upper levels are a tree over replicas x microbatches x the nodes of a microbatch, of which a replica has a part.
/// Microbatches come in any order; what has no sibling yet is kept. No communication.
class ReplicaSums {
 public:
  /// `nodes`: of a replica's microbatch (Batching::nodes_per_microbatch()).
  ReplicaSums(const Mesh& mesh, int64_t microbatches, int64_t nodes = 1);

  /// `gradient` is unfinished over the replicas alone, if there are several; undefined: nothing to add. Throws BadInput
  /// where it was summed over several replicas before, and where a microbatch has several nodes: those come by
  /// add_nodes(). REQUIRES: it is no formal sum of several gradients.
  void add(int64_t microbatch, const at::Tensor& gradient);

  /// `nodes` [replicas x nodes, sizes...] in a layout of layout_of_nodes(). REQUIRES: a microbatch has several.
  void add_nodes(int64_t microbatch, const at::Tensor& nodes);

  /// The step's gradient, unfinished over replicas; undefined if there was none. REQUIRES: all microbatches were added.
  /// Starts anew.
  at::Tensor finish();

 private:
  int64_t replica(size_t index) const;
  int64_t first_leaf(size_t index, int64_t microbatch) const;
  at::Tensor node(const at::Tensor& gradient, size_t index) const;
  void require_unfinished(const TensorSpec& gradient) const;
  const TensorSpec* spec_of_sum(Layout layout, bool is_unfinished, at::IntArrayRef sizes, c10::ScalarType dtype) const;
  at::Tensor joined(size_t index);

  const Mesh& mesh_;
  int axis_;  ///< dp_replicate, or -1
  int64_t microbatches_, nodes_;
  SumTree tree_;
  std::vector<SumJoiner<at::Tensor>> joiners_;  ///< per local rank
  const TensorSpec* spec_ = nullptr;            ///< of the step's sum, once there is any
  at::Tensor only_;                             ///< what the only microbatch has
};

}  // namespace lockstep::trainer

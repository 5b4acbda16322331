#include "trainer/step/replica_sums.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/tensor/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::trainer {
namespace {

int64_t replicas(const Mesh& mesh) {
  const int axis = mesh.find_axis(axis::kReplicate);
  return axis < 0 ? 1 : mesh.axis_size(axis);
}

}  // namespace

at::Tensor sum_of(const at::Tensor& left, const at::Tensor& right) {
  if (!left.defined() || !right.defined()) return left.defined() ? left : right;
  return at::add(left, right);
}

ReplicaSums::ReplicaSums(const Mesh& mesh, int64_t microbatches)
    : mesh_(mesh),
      axis_(mesh.find_axis(axis::kReplicate)),
      microbatches_(microbatches),
      tree_(SumTree::over_samples(microbatches * replicas(mesh))),
      joiners_(mesh.local_count(), SumJoiner<at::Tensor>(tree_)) {}

int64_t ReplicaSums::replica(size_t index) const {
  return axis_ < 0 ? 0 : mesh_.coordinate(mesh_.local_ranks()[index], axis_);
}

/// What local rank `index` holds: one node of the tree over samples, as a microbatch is a power of two of them.
at::Tensor ReplicaSums::node(const at::Tensor& gradient, size_t index) const {
  if (!gradient.defined()) return {};
  const auto& shard = sharded(gradient).shards()->local_tensors()[index];
  if (!spec_of(gradient).any_partial) return shard;
  LOCKSTEP_CHECK_EQ(shard.size(0), 1);
  return shard[0];
}

void ReplicaSums::add(int64_t microbatch, const at::Tensor& gradient) {
  const PlainTensors guard;
  if (gradient.defined()) like_ = gradient;
  if (microbatches_ == 1) return;
  if (gradient.defined() && replicas(mesh_) > 1 && !spec_of(gradient).any_partial)
    fail<BadInput>(
        "a gradient ({}) is summed over dp_replicate before its microbatches are: their number would change its bits. "
        "Use one microbatch or numerics.mode = \"native\".",
        spec_of(gradient).text());
  for (size_t i = 0; i < joiners_.size(); ++i)
    joiners_[i].add({0, replica(i) * microbatches_ + microbatch}, node(gradient, i), sum_of);
}

/// What local rank `index` has joined; what is absent is zero.
at::Tensor ReplicaSums::joined(size_t index, const at::Tensor& like) {
  std::vector<at::Tensor> nodes;
  for (const auto& part : joiners_[index].parts())
    nodes.push_back(part.value.defined() ? part.value : at::zeros_like(node(like, index)));
  return spec_of(like).any_partial ? at::stack(nodes) : nodes[0];
}

at::Tensor ReplicaSums::joined(const at::Tensor& like) {
  const auto& spec = spec_of(like);
  Shards shards;
  for (size_t i = 0; i < joiners_.size(); ++i) shards.push_back(joined(i, like));
  auto layout = spec.layout;
  if (spec.any_partial) layout = layout.with(axis_, Placement::ordered_sum(tree_.size, tree_.leaf, microbatches_));
  return from_shards(std::move(shards), layout, spec.sizes, spec.dtype);
}

at::Tensor ReplicaSums::finish() {
  const PlainTensors guard;
  auto sum = std::exchange(like_, at::Tensor());
  if (microbatches_ > 1 && sum.defined()) sum = joined(sum);
  for (auto& joiner : joiners_) joiner.parts().clear();
  return sum;
}

}  // namespace lockstep::trainer

#include "trainer/gradients/replica_sums.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/gradients/shard_axes.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::trainer {
namespace {

int64_t replicas(const Mesh& mesh) {
  const int axis = mesh.find_axis(axis::kReplicate);
  return axis < 0 ? 1 : mesh.axis_size(axis);
}

/// A node that waits for its sibling must not keep the bytes of those that it came with.
void keep_alone(at::Tensor& node) {
  if (node.defined() && node.storage().nbytes() > node.nbytes()) node = node.clone();
}

bool is_sum_over(int64_t samples, const Layout& layout) {
  const auto* sum = layout.ordered_sum();
  if (!sum || sum->terms > 1 || sum->rounded_levels > 0) return false;
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (layout[axis].is_ordered() != is_data_parallel_axis(layout.mesh(), axis)) return false;
  return sum_tree(*sum).leaf_count() == samples;
}

/// With a dimension more in front, or (-1) without the first, which nobody may cut.
Layout with_dims_moved(const Layout& layout, int by) {
  auto placements = layout.placements();
  for (auto& placement : placements)
    if (placement.is_shard()) placement.dim += by;
  return Layout(layout.mesh(), std::move(placements));
}

/// How a sum of nodes in `layout` lies, but for dp_replicate, whose ranks hold different ones.
Layout layout_of_their_sum(const Layout& layout) {
  const int axis = layout.mesh().find_axis(axis::kReplicate);
  return with_dims_moved(axis < 0 ? layout : layout.with(axis, Placement::replicate()), -1);
}

}  // namespace

at::Tensor nodes_of(const at::Tensor& gradient, int64_t samples) {
  const PlainTensors guard;
  const auto& spec = spec_of(gradient);
  if (!is_sum_over(samples, spec.layout)) return {};
  auto placements = with_dims_moved(spec.layout, 1).placements();
  int64_t ranks = 1;
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    if (!placements[axis].is_ordered()) continue;
    placements[axis] = Placement::shard(0, 1, placements[axis].depth);
    ranks *= spec.layout.mesh().axis_size(static_cast<int>(axis));
  }
  auto sizes = spec.sizes;
  sizes.insert(sizes.begin(), ranks);
  return from_shards(sharded(gradient).shards()->sums(), Layout(spec.layout.mesh(), std::move(placements)), sizes,
                     storage(spec));
}

Layout layout_of_nodes(const Layout& parameter) {
  const int axis = parameter.mesh().find_axis(axis::kReplicate);
  const auto moved = with_dims_moved(parameter, 1);
  return axis < 0 ? moved : moved.with(axis, Placement::shard(0));
}

at::Tensor sum_of(const at::Tensor& left, const at::Tensor& right) {
  if (!left.defined() || !right.defined()) return left.defined() ? left : right;
  return at::add(left, right);
}

ReplicaSums::ReplicaSums(const Mesh& mesh, int64_t microbatches, int64_t nodes)
    : mesh_(mesh),
      axis_(mesh.find_axis(axis::kReplicate)),
      microbatches_(microbatches),
      nodes_(nodes),
      tree_(SumTree::over_samples(replicas(mesh) * microbatches * nodes)),
      joiners_(mesh.local_count(), SumJoiner<at::Tensor>(tree_)) {}

int64_t ReplicaSums::replica(size_t index) const {
  return axis_ < 0 ? 0 : mesh_.coordinate(mesh_.local_ranks()[index], axis_);
}

int64_t ReplicaSums::first_leaf(size_t index, int64_t microbatch) const {
  return (replica(index) * microbatches_ + microbatch) * nodes_;
}

/// What local rank `index` holds: one node of the tree over samples.
at::Tensor ReplicaSums::node(const at::Tensor& gradient, size_t index) const {
  if (!gradient.defined()) return {};
  const auto& shard = sharded(gradient).shards()->local_tensors()[index];
  if (!spec_of(gradient).any_partial) return shard;
  LOCKSTEP_CHECK_EQ(shard.size(0), 1);
  return shard[0];
}

void ReplicaSums::require_unfinished(const TensorSpec& gradient) const {
  if (nodes_ > 1)
    fail<BadInput>(
        "a gradient ({}) is no sum over samples that {} ranks of dp_shard have parts of: the number of microbatches "
        "would change its bits. Use one microbatch, dp_shard of a power of two or numerics.mode = \"native\".",
        gradient.text(), nodes_);
  if (replicas(mesh_) > 1 && !gradient.any_partial)
    fail<BadInput>(
        "a gradient ({}) is summed over dp_replicate before its microbatches are: their number would change its bits. "
        "Use one microbatch or numerics.mode = \"native\".",
        gradient.text());
}

/// Of the step's sum, where a part of it lies in `layout`.
const TensorSpec* ReplicaSums::spec_of_sum(Layout layout, bool is_unfinished, at::IntArrayRef sizes,
                                           c10::ScalarType dtype) const {
  if (is_unfinished)
    layout = layout.with(axis_, Placement::ordered_sum(tree_.size, tree_.leaf, microbatches_ * nodes_));
  return mesh_.specs().intern(layout, sizes, dtype);
}

void ReplicaSums::add(int64_t microbatch, const at::Tensor& gradient) {
  const PlainTensors guard;
  if (microbatches_ == 1) return (void)(only_ = gradient);
  if (gradient.defined()) {
    const auto& spec = spec_of(gradient);
    require_unfinished(spec);
    spec_ = spec_of_sum(spec.layout, spec.any_partial, spec.sizes, spec.dtype);
  }
  for (size_t i = 0; i < joiners_.size(); ++i)
    for (int64_t n = 0; n < nodes_; ++n) joiners_[i].add({0, first_leaf(i, microbatch) + n}, node(gradient, i), sum_of);
}

void ReplicaSums::add_nodes(int64_t microbatch, const at::Tensor& nodes) {
  const PlainTensors guard;
  const auto& spec = spec_of(nodes);
  spec_ = spec_of_sum(layout_of_their_sum(spec.layout), axis_ >= 0, at::IntArrayRef(spec.sizes).slice(1), spec.dtype);
  for (size_t i = 0; i < joiners_.size(); ++i) {
    const auto& here = sharded(nodes).shards()->whole()[i];
    LOCKSTEP_CHECK_EQ(here.size(0), nodes_);
    for (int64_t n = 0; n < nodes_; ++n) joiners_[i].add({0, first_leaf(i, microbatch) + n}, here[n], sum_of);
    for (auto& part : joiners_[i].parts()) keep_alone(part.value);
  }
}

/// What local rank `index` has joined; what is absent is zero. REQUIRES: not all of it is.
at::Tensor ReplicaSums::joined(size_t index) {
  std::vector<at::Tensor> nodes;
  for (const auto& part : joiners_[index].parts()) nodes.push_back(part.value);
  const auto like = *std::find_if(nodes.begin(), nodes.end(), [](const at::Tensor& node) { return node.defined(); });
  for (auto& node : nodes)
    if (!node.defined()) node = at::zeros_like(like);
  return spec_->any_partial ? at::stack(nodes) : nodes[0];
}

at::Tensor ReplicaSums::finish() {
  const PlainTensors guard;
  auto sum = std::exchange(only_, {});
  if (spec_) {
    Shards shards;
    for (size_t i = 0; i < joiners_.size(); ++i) shards.push_back(joined(i));
    sum = from_shards(std::move(shards), spec_->layout, spec_->sizes, spec_->dtype);
  }
  spec_ = nullptr;
  for (auto& joiner : joiners_) joiner.parts().clear();
  return sum;
}

}  // namespace lockstep::trainer

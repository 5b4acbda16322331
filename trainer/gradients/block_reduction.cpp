#include "trainer/gradients/block_reduction.h"

#include <utility>

#include "core/error.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/gradients/replica_sums.h"
#include "trainer/gradients/shard_axes.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::trainer {
namespace {

/// Where a gradient goes: the parameter's cuts by shard axes; Partial axes besides stay Partial. Canonical sums over
/// samples stay unfinished over replicas alone: those hold the tree's upper levels. A formal sum stays as it is.
Layout gradient_layout(const Layout& gradient, const Layout& parameter) {
  const bool canonical = parameter.mesh().world().canonical();
  const int replicas = parameter.mesh().find_axis(axis::kReplicate);
  Layout target = parameter;
  for (int axis = 0; axis < target.axis_count(); ++axis)
    if (gradient[axis].is_partial() &&
        (gradient.is_formal_sum() || (canonical ? axis == replicas : !is_shard_axis(parameter.mesh(), axis))))
      target = target.with(axis, gradient[axis]);
  return target;
}

/// A sum over samples that is finished is rounded to what its parameter is computed in: in each microbatch.
void require_unrounded(const at::Tensor& gradient, int64_t microbatches) {
  const auto& spec = spec_of(gradient);
  if (microbatches == 1 || spec.layout.ordered_sum() || c10::elementSize(spec.dtype) > 2 ||
      !spec.layout.mesh().world().canonical())
    return;
  const auto module = RunContext::current().module();
  fail<BadInput>(
      "{}: the gradient of a parameter ({}) is rounded in each microbatch, since an op took the sum over samples "
      "before "
      "it was finished, as autograd does for what is broadcast in a sum or product: the number of microbatches would "
      "change its bits. Use a layer of models/layers.h or scaled_columns() (runtime/own_ops/parameter_gradients.h), "
      "name "
      "the parameter in training.mixed_precision_float32, or use one microbatch or numerics.mode = \"native\".",
      module.empty() ? "the model" : module, spec.text());
}

}  // namespace

void BlockReduction::add(const at::Tensor& leaf, const at::Tensor& gradient) {
  require_unrounded(gradient, taker_.microbatches);
  const auto& spec = spec_of(leaf);
  const auto sum = declared_as(gradient, spec.dtype);
  auto nodes = taker_.samples > 0 ? nodes_of(sum, taker_.samples) : at::Tensor();
  gradients_.push_back({leaf, nodes.defined()});
  if (nodes.defined())
    bucket_.add(std::move(nodes), layout_of_nodes(spec.layout));
  else
    bucket_.add(sum, gradient_layout(layout_of(sum), spec.layout));
}

void BlockReduction::finish(std::vector<at::Tensor>* autograd) {
  auto sums = bucket_.finish();
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto& [leaf, is_nodes] = gradients_[i];
    const auto sum = std::exchange(sums[i], {});
    if (is_nodes)
      taker_.take_nodes(leaf, sum);
    else if (const auto gradient = sum.to(spec_of(leaf).dtype); taker_.take)
      taker_.take(leaf, gradient);
    else
      autograd->at(i) = gradient;
  }
}

void BlockReductions::add(BlockReduction reduction) {
  finish();
  if (!reduction.overlaps()) return reduction.finish();
  reduction.start();
  current_.emplace(std::move(reduction));
}

void BlockReductions::finish() {
  if (auto ending = std::exchange(current_, std::nullopt)) ending->finish();
}

}  // namespace lockstep::trainer

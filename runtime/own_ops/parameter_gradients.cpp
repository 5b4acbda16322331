#include "runtime/own_ops/parameter_gradients.h"

#include <ATen/Functions.h>

#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/ordered_sums.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/domain.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using at::Tensor;

std::vector<int64_t> leading_dims(const Tensor& tensor) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d + 1 < tensor.dim(); ++d) dims.push_back(d);
  return dims;
}

/// The sums of a bundle of matrices [b, n, k], finished and cut along the first dimension of those that nobody cuts.
Tensor finished(const Tensor& sums) {
  const auto& layout = layout_of(sums);
  int dim = 1;
  while (dim < 3 && !layout.cutters(dim).empty()) ++dim;
  auto placements = layout.placements();
  for (auto& placement : placements)
    if (placement.is_ordered()) placement = dim < 3 ? Placement::shard(dim) : Placement::replicate();
  return redistribute_values(sums, Layout(layout.mesh(), with_mesh_order(std::move(placements))), "redistribute");
}

/// Canonical: where a mesh axis cuts the positions of samples [b, l, ...], each sample's sum is finished first, then
/// samples are added. Nothing is gathered, and every rank adds what it has. (A sample of several rows is one sum over
/// all of their positions, which no rank has a run of.)
bool sums_by_sample(const Tensor& gradient) {
  const auto& layout = layout_of(gradient);
  if (!layout.mesh().world().canonical() || gradient.dim() != 3 || layout.cutters(1).empty()) return false;
  return tree_over_batch(gradient.size(0), 3, RunContext::current().rows().count).leaf == 1;
}

/// In the dtype that sums are kept in, so that no sample's is rounded.
Tensor widened(const Tensor& tensor) { return tensor.to(accumulation(Domain::kDeclared, tensor.scalar_type())); }

}  // namespace

Tensor linear_weight_gradient(const Tensor& gradient, const Tensor& input) {
  if (!sums_by_sample(gradient)) return mesh_ops::weight_gradient(gradient, input);
  const auto samples = finished(at::matmul(widened(gradient).transpose(1, 2), widened(input)));
  return declared_as(at::sum(samples, {0}, false), gradient.scalar_type());
}

Tensor bias_gradient(const Tensor& gradient) {
  if (gradient.dim() == 1) return gradient;
  if (!sums_by_sample(gradient)) return at::sum(gradient, leading_dims(gradient), false);
  // Three dimensions still: rows of two would be elements of one sum, not samples, outside of a BatchScope.
  const auto samples = at::sum(widened(gradient), {1}, true);
  return declared_as(at::sum(samples, c10::IntArrayRef({0, 1}), false), gradient.scalar_type());
}

}  // namespace lockstep

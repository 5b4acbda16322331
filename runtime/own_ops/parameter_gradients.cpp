#include "runtime/own_ops/parameter_gradients.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/context/run_context.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/ordered_sums.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/domain.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using at::Tensor;

/// Of ops that only some meshes have, so that they do not take the ids of those that all have: parts of a gradient are
/// added up.
constexpr Phase kBySample = Phase::kReduce;

std::vector<int64_t> leading_dims(const Tensor& tensor) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d + 1 < tensor.dim(); ++d) dims.push_back(d);
  return dims;
}

/// The sums of a bundle of matrices [b, ...], finished and cut along the first dimension of those that nobody cuts.
Tensor finished(const Tensor& sums) {
  const auto& layout = layout_of(sums);
  const int dims = static_cast<int>(sums.dim());
  int dim = 1;
  while (dim < dims && !layout.cutters(dim).empty()) ++dim;
  auto placements = layout.placements();
  for (auto& placement : placements)
    if (placement.is_ordered()) placement = dim < dims ? Placement::shard(dim) : Placement::replicate();
  return redistribute_values(sums, Layout(layout.mesh(), with_mesh_order(std::move(placements))), "redistribute");
}

/// Canonical: whether each sample is a row of the batch.
bool are_rows_of_the_batch(const Tensor& gradient) {
  if (!layout_of(gradient).mesh().world().canonical()) return false;
  return tree_over_batch(gradient.size(0), static_cast<size_t>(gradient.dim()), RunContext::current().rows().count)
             .leaf == 1;
}

/// Canonical: whether a sum over everything but the last dimension of [b, l, n] is one over samples of sums over
/// positions, whoever has which of them.
bool has_leaf_for_each_sample(const Tensor& gradient) { return gradient.dim() == 3 && are_rows_of_the_batch(gradient); }

struct ScaledColumns : torch::autograd::Function<ScaledColumns> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& scale) {
    context->save_for_backward({x, scale});
    return at::mul(x, scale);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {at::mul(gradients[0], saved[1]), bias_gradient(at::mul(gradients[0], saved[0]))};
  }
};

}  // namespace

Tensor widened(const Tensor& tensor) { return tensor.to(accumulation(Domain::kDeclared, tensor.scalar_type())); }

Tensor scaled_columns(const Tensor& x, const Tensor& scale) {
  return is_sharded(x) ? ScaledColumns::apply(x, scale) : at::mul(x, scale);
}

bool sums_by_sample(const Tensor& gradient, int positions) {
  return are_rows_of_the_batch(gradient) && !layout_of(gradient).cutters(positions).empty();
}

Tensor sum_of_samples(c10::ScalarType dtype, const std::function<Tensor()>& samples) {
  const PhaseScope scope(kBySample);
  return declared_as(at::sum(finished(samples()), {0}, false), dtype);
}

Tensor linear_weight_gradient(const Tensor& gradient, const Tensor& input) {
  if (gradient.dim() != 3 || !sums_by_sample(gradient, 1)) return mesh_ops::weight_gradient(gradient, input);
  return sum_of_samples(gradient.scalar_type(),
                        [&] { return at::matmul(widened(gradient).transpose(1, 2), widened(input)); });
}

Tensor bias_gradient(const Tensor& gradient) {
  if (gradient.dim() == 1) return gradient;
  if (!has_leaf_for_each_sample(gradient)) return at::sum(gradient, leading_dims(gradient), false);
  // On every mesh the same ops, so that ids are the same on all. In the dtype that sums are kept in, so that no
  // sample's is rounded. Three dimensions still: rows of two would be elements of one sum, not samples, outside of a
  // BatchScope.
  const auto wide = accumulation(Domain::kDeclared, gradient.scalar_type());
  return at::sum(at::sum(gradient, {1}, true, wide), c10::IntArrayRef({0, 1}), false, gradient.scalar_type());
}

}  // namespace lockstep

// The gradient of a weight: a product summed over all leading dimensions, which LibTorch has no single op for.
#include <ATen/Functions.h>

#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/canonical_local.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

/// Canonical numerics has a kernel of the same name.
constexpr Tensor (*kOnCpu)(const Tensor&, const Tensor&) = kernels::weight_gradient;

std::vector<ResultShape> weight_gradient_shape(const Call& call) {
  return {{{call.sizes_of("gradient").back(), call.sizes_of("input").back()}, {}, call.dtype_of("gradient")}};
}

/// Samples first; rows that are no batch are the elements of one sum.
void canonical_weight_gradient(const LocalCall& call, torch::jit::Stack& stack) {
  auto gradient = call.tensor(stack, "gradient"), input = call.tensor(stack, "input");
  const auto& spec = *call.plan.wanted[0];
  const bool is_vector = gradient.dim() == 1;
  if (is_vector) return (void)(stack = {at::outer(gradient, input)});
  const auto tree = batch_tree(call);
  const bool is_batch = spec.sizes.size() > 2 || tree.leaf != SumTree::over_elements(spec.sizes[0]).leaf;
  const auto range = contracted_here(call, 0, 0, is_batch ? tree.leaf : 1);
  if (is_batch && tree.leaf > 1) {
    const auto between = gradient.sizes().slice(1, gradient.sizes().size() - 2);
    const int64_t samples = gradient.size(0) / tree.leaf, rows = tree.leaf * c10::multiply_integers(between);
    gradient = gradient.reshape({samples, rows, gradient.size(-1)});
    input = input.reshape({samples, rows, input.size(-1)});
  }
  stack = {is_batch ? kernels::weight_gradient(gradient, input, range) : kernels::product(gradient.t(), input, range)};
}

constexpr OwnOp kOps[] = {
    {.schema = "weight_gradient(Tensor gradient, Tensor input) -> Tensor",
     .on_cpu = kernel<kOnCpu>,
     .on_gpu = kernel<composed::weight_gradient>,
     .rule = {"mesh::weight_gradient", "matmul", "...n,...k->nk", "ee", Rule::kPlain, nullptr, weight_gradient_shape},
     .canonical = {canonical_weight_gradient, Rule::kSamples, true}},
};

}  // namespace

OwnOpFamily weight_gradient() { return {kOps}; }

}  // namespace own_ops

namespace mesh_ops {

Tensor weight_gradient(const Tensor& gradient, const Tensor& input) {
  static const auto op = own_ops::typed_op<own_ops::kOnCpu>("mesh::weight_gradient");
  return op.call(gradient, input);
}

}  // namespace mesh_ops
}  // namespace lockstep

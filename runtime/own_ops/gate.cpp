// SwiGLU.
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/double_backward.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/canonical_local.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void require_two(const Call& call, const std::vector<int64_t>& both) {
  if (const auto entries = both[both.size() - 2]; entries != 2)
    fail<BadInput>("{}: the last dimension but one holds a gate and what it gates, so it has 2 entries, not {}",
                   call.op, entries);
}

/// The gate's dimension, the last but one, disappears.
std::vector<ResultShape> gated_shape(const Call& call) {
  auto sizes = call.operand_sizes[0];
  require_two(call, sizes);
  sizes.erase(sizes.end() - 2);
  return {{sizes, {}, call.operand_dtypes[0]}};
}

std::vector<ResultShape> gradient_shape(const Call& call) {
  require_two(call, call.sizes_of("both"));
  return like_second(call);
}

struct Swiglu : torch::autograd::Function<Swiglu> {
  static Tensor forward(AutogradContext* context, const Tensor& both) {
    context->save_for_backward({both});
    const at::AutoDispatchBelowAutograd below;
    return mesh_ops::swiglu(both);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto both = context->get_saved_variables()[0];
    if (is_differentiated_again()) return differentiable_gradients(composed::swiglu(both), {both}, gradients[0]);
    return {mesh_ops::swiglu_backward(gradients[0], both)};
  }
};

Tensor differentiable_swiglu(const Tensor& both) { return Swiglu::apply(both); }

void register_derivatives(torch::Library& /*aten*/, torch::Library& mesh) {
  mesh.impl("swiglu", TORCH_FN(differentiable_swiglu));
}

constexpr OwnOp kOps[] = {
    {.schema = "swiglu(Tensor both) -> Tensor",
     .on_cpu = kernel<kernels::swiglu>,
     .on_gpu = kernel<on_gpu::swiglu>,
     .rule = {"mesh::swiglu", "row", "...Tw->...w", "-", Rule::kNoReduce | Rule::kOfRows, nullptr, gated_shape},
     .canonical = {direct_call<kernels::swiglu>, Rule::kPlain, true}},
    {.schema = "swiglu_backward(Tensor gradient, Tensor both) -> Tensor",
     .on_cpu = kernel<kernels::swiglu_backward>,
     .on_gpu = kernel<on_gpu::swiglu_backward>,
     .rule = {"mesh::swiglu_backward", "row", "...w,...Tw->...Tw", "e-", Rule::kOfRows, nullptr, gradient_shape},
     .canonical = {direct_call<kernels::swiglu_backward>, Rule::kPlain, true}},
};

}  // namespace

OwnOpFamily gate() { return {kOps, register_derivatives}; }

}  // namespace own_ops

namespace mesh_ops {

Tensor swiglu(const Tensor& both) {
  static const auto op = own_ops::typed_op<kernels::swiglu>("mesh::swiglu");
  return op.call(both);
}

Tensor swiglu_backward(const Tensor& gradient, const Tensor& both) {
  static const auto op = own_ops::typed_op<kernels::swiglu_backward>("mesh::swiglu_backward");
  return op.call(gradient, both);
}

}  // namespace mesh_ops
}  // namespace lockstep

// Rotary position embedding: its derivative is the same op, the other way.
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/canonical_local.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<ResultShape> rotated_shape(const Call& call) {
  const int64_t width = call.sizes_of("x")[3], columns = call.sizes_of("cosines")[1];
  if (width != 2 * columns)
    fail<BadInput>("{}: heads of size {} need tables of half as many columns, not {}", call.op, width, columns);
  return {heads_inside(call.operand_sizes[0], call.operand_dtypes[0])};
}

struct RotatePairs : torch::autograd::Function<RotatePairs> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cosines, const Tensor& sines,
                        bool back) {
    context->save_for_backward({cosines, sines});
    context->saved_data["back"] = back;
    const at::AutoDispatchBelowAutograd below;
    return mesh_ops::rotate_pairs(x, cosines, sines, back);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {
        mesh_ops::rotate_pairs(gradients[0], saved[0], saved[1], !context->saved_data["back"].toBool()), {}, {}, {}};
  }
};

Tensor differentiable_rotate_pairs(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back) {
  return RotatePairs::apply(x, cosines, sines, back);
}

void register_derivatives(torch::Library& /*aten*/, torch::Library& mesh) {
  mesh.impl("rotate_pairs", TORCH_FN(differentiable_rotate_pairs));
}

constexpr OwnOp kOps[] = {
    {.schema = "rotate_pairs(Tensor x, Tensor cosines, Tensor sines, bool back) -> Tensor",
     .on_cpu = kernel<kernels::rotate_pairs>,
     .on_gpu = kernel<on_gpu::rotate_pairs>,
     .rule = {"mesh::rotate_pairs", "attention", "bhlD,lP,lP->bhlD", "e--", Rule::kPlain, nullptr, rotated_shape},
     .canonical = {direct_call<kernels::rotate_pairs>, Rule::kPlain, true}},
};

}  // namespace

OwnOpFamily rotary() { return {kOps, register_derivatives}; }

}  // namespace own_ops

namespace mesh_ops {

Tensor rotate_pairs(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back) {
  static const auto op = own_ops::typed_op<kernels::rotate_pairs>("mesh::rotate_pairs");
  return op.call(x, cosines, sines, back);
}

}  // namespace mesh_ops
}  // namespace lockstep

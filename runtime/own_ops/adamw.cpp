// A step of AdamW: pointwise on a parameter, its gradient and its state.
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/canonical_local.h"

namespace lockstep {
namespace own_ops {
namespace {

constexpr OwnOp kOps[] = {
    {.schema = "adamw(Tensor(a!) parameter, Tensor gradient, Tensor(b!) mean, Tensor(c!) square, float learning_rate, "
               "float beta1, float beta2, float epsilon, float weight_decay, float correction1, float correction2, "
               "float gradient_scale) -> ()",
     .on_cpu = kernel<kernels::adamw>,
     .on_gpu = kernel<on_gpu::adamw>,
     .rule = {"mesh::adamw", "optimizer", "...,...,...,...->...", "-"},
     .canonical = {direct_call<kernels::adamw>, Rule::kPlain, true}},
};

}  // namespace

OwnOpFamily adamw() { return {kOps}; }

}  // namespace own_ops

void mesh_ops::adamw(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& mean,
                     const at::Tensor& square, const AdamwOptions& options) {
  static const auto op = own_ops::typed_op<kernels::adamw>("mesh::adamw");
  op.call(parameter, gradient, mean, square, options.learning_rate, options.beta1, options.beta2, options.epsilon,
          options.weight_decay, options.correction1, options.correction2, options.gradient_scale);
}

}  // namespace lockstep

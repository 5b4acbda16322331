// A step of AdamW: pointwise on a parameter, its gradient and its state.
#include "runtime/context/observer.h"
#include "runtime/context/world.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/on_gpu/state_visit.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/planning/canonical_local.h"

namespace lockstep {
namespace own_ops {
namespace {

bool visits(const torch::jit::Stack& stack) { return stack[0].toTensor().is_cuda() && stack[2].toTensor().is_cpu(); }

/// State that the host keeps (optimizer.offload_state) visits the GPU.
template <auto* kKernel>
void with_visiting_state(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& mean,
                         const at::Tensor& square, double learning_rate, double beta1, double beta2, double epsilon,
                         double weight_decay, double correction1, double correction2, double gradient_scale) {
  const auto update = [&](const at::Tensor& p, const at::Tensor& g, const at::Tensor& m, const at::Tensor& s) {
    kKernel(p, g, m, s, learning_rate, beta1, beta2, epsilon, weight_decay, correction1, correction2, gradient_scale);
  };
  on_gpu::update_visiting_state(parameter, gradient, mean, square, update);
}

/// Whoever asked for the update waits for the state (on_gpu::wait_for_state()); observers look at it at once.
template <auto* kKernel>
void local_adamw(const LocalCall& call, torch::jit::Stack& stack) {
  if (!visits(stack)) return direct_call<kKernel>(call, stack);
  direct_call<with_visiting_state<kKernel>>(call, stack);
  if (!call.plan.wanted[0]->layout.mesh().world().observers().empty()) on_gpu::wait_for_state();
}

void native_adamw(const LocalCall& call, torch::jit::Stack& stack) {
  if (!visits(stack)) return call.op.callBoxed(stack);
  local_adamw<on_gpu::adamw>(call, stack);
}

constexpr OwnOp kOps[] = {
    {.schema = "adamw(Tensor(a!) parameter, Tensor gradient, Tensor(b!) mean, Tensor(c!) square, float learning_rate, "
               "float beta1, float beta2, float epsilon, float weight_decay, float correction1, float correction2, "
               "float gradient_scale) -> ()",
     .on_cpu = kernel<kernels::adamw>,
     .on_gpu = kernel<on_gpu::adamw>,
     .rule = {"mesh::adamw", "optimizer", "...,...,...,...->...", "-", Rule::kPlain, nullptr, nullptr, native_adamw},
     .canonical = {local_adamw<kernels::adamw>, Rule::kPlain, true}},
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

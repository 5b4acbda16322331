#include "runtime/planning/infer_results.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/planning/check_operands.h"
#include "runtime/planning/make_plan.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

bool has_meta_kernel(const c10::OperatorHandle& op, const Rule& rule) {
  return op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta) && !rule.shapes && !is_own_op(rule);
}

/// LibTorch's expand lets a negative size of a new dimension pass.
ResultShape possible_shape_of(const Call& call, const at::Tensor& tensor) {
  for (const int64_t size : tensor.sizes())
    if (size < 0)
      fail<BadInput>("{}: the result would have sizes {}, of which {} is below 0", call.op, c10::str(tensor.sizes()),
                     size);
  return shape_of(tensor);
}

void infer_on_meta(const c10::OperatorHandle& op, Call& call, Plan& plan) {
  torch::jit::Stack stack(call.arguments.begin(), call.arguments.end());
  for_each_tensor(call.arguments, [&](const Slot& slot, const at::Tensor& tensor) {
    set_slot(stack, slot, is_sharded(tensor) ? meta_like(tensor) : tensor);
  });
  for (const int i : plan.device_arguments) stack[static_cast<size_t>(i)] = c10::Device(c10::kMeta);
  op.callBoxed(stack);
  for (const auto& value : stack) {
    if (value.isTensor()) {
      call.results.push_back(possible_shape_of(call, value.toTensor()));
    } else {
      plan.returns_list = true;
      for (const at::Tensor& tensor : value.toTensorVector()) call.results.push_back(possible_shape_of(call, tensor));
    }
  }
}

void infer_written(const c10::OperatorHandle& op, Call& call, Plan& plan) {
  for (const int slot : plan.all_written)
    if (!plan.given[static_cast<size_t>(slot)])
      fail<BadInput>("{}: a sharded tensor cannot be written into a plain one in place", call.op);
  const auto written = static_cast<size_t>(plan.written);
  if (has_meta_kernel(op, *plan.rule))
    infer_on_meta(op, call, plan);
  else
    check_operands(*plan.rule, call);
  if (plan.rule->shapes && !is_pointwise(*plan.rule)) plan.rule->shapes(call);  // they check what LibTorch would
  if (is_pointwise(*plan.rule)) check_fits_written(*plan.rule, call, written);
  const auto* self = plan.given[written];
  call.results = {{self->sizes, self->strides, self->dtype}};
}

}  // namespace

at::Tensor meta_like(const at::Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(),
                           at::TensorOptions().dtype(tensor.scalar_type()).device(c10::kMeta));
}

ResultShape shape_of(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

void infer_results(const c10::OperatorHandle& op, Call& call, Plan& plan) {
  if (plan.written >= 0) return infer_written(op, call, plan);
  if (!plan.rule->shapes) return infer_on_meta(op, call, plan);
  check_operands(*plan.rule, call);
  call.results = plan.rule->shapes(call);
}

}  // namespace lockstep

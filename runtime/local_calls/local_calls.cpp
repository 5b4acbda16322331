#include "runtime/local_calls/local_calls.h"

#include <ATen/Functions.h>

#include "runtime/context/world.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rule.h"
#include "runtime/tensor/domain.h"

namespace lockstep {

const at::Tensor& tensor_in(const c10::IValue* arguments, const Slot& slot, at::Tensor& storage) {
  const auto& value = arguments[slot.argument];
  if (slot.element < 0) return value.toTensor();
  storage = value.isTensorList() ? value.toTensorList().get(static_cast<size_t>(slot.element))
                                 : *value.toOptionalTensorVector()[static_cast<size_t>(slot.element)];
  return storage;
}

void LocalCalls::fill(size_t index, torch::jit::Stack& local, const at::Tensor* first) const {
  local.clear();
  for (size_t a = 0; a < arguments.size(); ++a) {
    const int operand = plan.operand_of[a];
    if (operand == 0 && first)
      local.emplace_back(*first);
    else if (operand >= 0 && operands[static_cast<size_t>(operand)])
      local.emplace_back(widened(operands[static_cast<size_t>(operand)]->local_tensors()[index]));
    else
      local.push_back(arguments[a]);
  }
  for (size_t i = 0; i < plan.slots.size(); ++i)
    if (!operands[i] || plan.slots[i].element >= 0) set_slot(local, plan.slots[i], local_tensor(i, index));
  for (const int i : plan.dtype_arguments) {
    auto& value = local[static_cast<size_t>(i)];
    const auto declared = value.isNone() ? plan.results[0]->dtype : value.toScalarType();
    value = static_cast<int64_t>(stored(world.domain(), declared));
  }
  for (const int i : plan.device_arguments) local[static_cast<size_t>(i)] = world.shard_device();
}

void LocalCalls::call(size_t index, torch::jit::Stack& local) {
  if (!plan.local) return op.callBoxed(local);
  at::Tensor cells;
  plan.local({op, plan, index, context, stream, present ? &(*present)[index] : nullptr, &cells}, local);
  if (plan.rule->traits & Rule::kPacks) made_present.push_back(std::move(cells));
}

/// What LibTorch would compute in float32 is computed in double where doubles are stored.
at::Tensor LocalCalls::widened(const at::Tensor& operand) const {
  return plan.widens_integers ? operand.to(c10::kDouble) : operand;
}

at::Tensor LocalCalls::local_tensor(size_t slot, size_t index) const {
  if (operands[slot]) return operands[slot]->local_tensors()[index];
  at::Tensor storage;
  return into_domain(world.domain(), tensor_in(arguments.data(), plan.slots[slot], storage));
}

}  // namespace lockstep

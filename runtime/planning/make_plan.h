#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <span>
#include <string>

#include "runtime/context/world.h"
#include "runtime/planning/plan.h"

namespace lockstep {

/// "add.Tensor", "mm", "mesh::attention": the op's name in the table.
const std::string& op_name(const c10::OperatorHandle& op);

/// Works out the plan of one op on concrete operands by `rules`. Throws BadInput if the op has no rule, if its operands
/// lie on different meshes, or if the policy forbids the communication that it would take. Of the context it takes the
/// number of rows in the batch, which a plan depends on, and names for errors.
std::unique_ptr<Plan> make_plan(const RuleSet& rules, const c10::OperatorHandle& op,
                                std::span<const c10::IValue> arguments, const Mesh& mesh, const RunContext& context);

/// Calls `visit(slot, tensor)` for every defined tensor among the arguments, list elements included.
template <class Visit>
void for_each_tensor(std::span<const c10::IValue> arguments, const Visit& visit) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& value = arguments[i];
    const int argument = static_cast<int>(i);
    if (value.isTensor()) {
      if (value.toTensor().defined()) visit(Slot{argument, -1}, value.toTensor());
    } else if (value.isTensorList()) {
      int element = 0;
      for (const at::Tensor& tensor : value.toTensorVector()) visit(Slot{argument, element++}, tensor);
    } else if (value.isOptionalTensorList()) {
      int element = 0;
      for (const auto& tensor : value.toOptionalTensorVector()) {
        if (tensor && tensor->defined()) visit(Slot{argument, element}, *tensor);
        ++element;
      }
    }
  }
}

/// Replaces the tensor in a slot of an argument list.
void set_slot(std::vector<c10::IValue>& arguments, const Slot& slot, const at::Tensor& tensor);

}  // namespace lockstep

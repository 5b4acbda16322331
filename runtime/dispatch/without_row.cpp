#include "runtime/dispatch/without_row.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "runtime/context/run_context.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/dispatch/composed/whole_ops.h"
#include "runtime/dispatch/dispatch.h"
#include "runtime/dispatch/functional_forms.h"
#include "runtime/dispatch/service.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using torch::jit::Stack;

/// That of the operands, else that of the context.
const Mesh& mesh_of(std::span<const c10::IValue> arguments) {
  const Mesh* mesh = nullptr;
  for_each_tensor(arguments, [&](const Slot&, const at::Tensor& tensor) {
    if (!mesh && is_sharded(tensor)) mesh = &spec_of(tensor).layout.mesh();
  });
  return mesh ? *mesh : RunContext::current().mesh();
}

void append_tensors(const c10::IValue& value, std::vector<at::Tensor>& all) {
  if (value.isTensor()) return all.push_back(value.toTensor());
  for (const at::Tensor& tensor : value.toTensorVector()) all.push_back(tensor);
}

/// What the functional overload takes: the out form's own arguments, and what the first tensor to write to says.
Stack functional_arguments(const c10::OperatorHandle& functional, const c10::OperatorHandle& op,
                           std::span<const c10::IValue> given, const at::Tensor& out) {
  Stack stack;
  for (const auto& argument : functional.schema().arguments()) {
    if (has_argument(op.schema(), argument.name()))
      stack.push_back(given[argument_number(op.schema(), argument.name())]);
    else if (argument.name() == "dtype")
      stack.emplace_back(static_cast<int64_t>(out.scalar_type()));
    else if (argument.name() == "device")
      stack.emplace_back(out.device());
    else
      stack.emplace_back();
  }
  return stack;
}

bool takes_tensors(const c10::FunctionSchema& schema) {
  const auto& all = schema.arguments();
  return std::any_of(all.begin(), all.end(),
                     [](const c10::Argument& each) { return each.type()->str().find("Tensor") != std::string::npos; });
}

/// Where both forms are decompositions one of them calls the other: LibTorch's own out form does not call itself.
/// (Those that only make tensors do not; what they are given they resize.)
bool is_left_to_libtorch(const RuleSet& rules, const c10::OperatorHandle& op, const c10::OperatorHandle& functional) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) &&
         takes_tensors(functional.schema()) && service_of(rules, functional).way == Service::kDecomposition;
}

bool takes_any_size(const at::Tensor& out) { return is_sharded(out) && out.numel() == 0; }

/// LibTorch would give `out` other sizes, or would compute in its dtype.
void check_fits(const c10::OperatorHandle& op, const at::Tensor& out, const at::Tensor& result) {
  if (!is_sharded(out))
    fail<BadInput>("{}: the tensor to write to is not on the mesh; make it there, or copy the result", op_name(op));
  if (out.sizes() != result.sizes() && !takes_any_size(out))
    fail<BadInput>("{}: the result has sizes {}, the tensor to write to {}; make it of the result's sizes", op_name(op),
                   c10::str(result.sizes()), c10::str(out.sizes()));
  if (out.scalar_type() != result.scalar_type())
    fail<BadInput>("{}: the result is {}, the tensor to write to {}; make it of the result's dtype", op_name(op),
                   c10::toString(result.scalar_type()), c10::toString(out.scalar_type()));
}

/// A tensor without elements becomes what the result is; others keep their layout.
void give(const at::Tensor& result, const at::Tensor& out) {
  if (takes_any_size(out) && out.sizes() != result.sizes())
    sharded(out).become(&spec_of(result), sharded(result).shards());
  else
    out.copy_(result);
}

/// All results are there before the first is written: they may be written over operands.
void write_out(const c10::OperatorHandle& functional, const c10::OperatorHandle& op, Stack& stack) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size(), first = stack.size() - count;
  const std::span<const c10::IValue> given(stack.data() + first, count);
  std::vector<at::Tensor> outs, results;
  std::vector<c10::IValue> returned;
  for (size_t i = 0; i < count; ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    append_tensors(given[i], outs);
    returned.push_back(given[i]);
  }
  Stack arguments = functional_arguments(functional, op, given, outs.at(0));
  functional.callBoxed(arguments);
  for (const auto& value : arguments) append_tensors(value, results);
  if (outs.size() != results.size())
    fail<BadInput>("{}: {} tensors to write to for {} results", op_name(op), outs.size(), results.size());
  for (size_t i = 0; i < outs.size(); ++i) check_fits(op, outs[i], results[i]);
  for (size_t i = 0; i < outs.size(); ++i) give(results[i], outs[i]);
  torch::jit::drop(stack, count);
  if (schema.returns().empty()) return;
  for (auto& value : returned) stack.push_back(std::move(value));
}

/// Decompositions compute of plain operands, too, and write what they get of them beside sharded ones: all on the mesh,
/// in the domain's storage.
void bring_to_mesh(Stack& stack, size_t first, const Mesh& mesh) {
  for (size_t i = first; i < stack.size(); ++i) {
    if (!stack[i].isTensor()) continue;
    const auto tensor = stack[i].toTensor();
    const bool is_plain = tensor.defined() && !is_sharded(tensor) && tensor.dim() == 0;
    if (is_plain && !tensor.unsafeGetTensorImpl()->is_wrapped_number())
      stack[i] = distribute(tensor, Layout::replicated(mesh));
  }
}

}  // namespace

void dispatch_without_row(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const auto& mesh = mesh_of({stack->data() + (stack->size() - count), count});
  const auto& rules = mesh.world().part<RulesInUse>().get();
  if (rules.find(op_name(op))) return dispatch(op, stack);
  const MeshScope scope(mesh);  // what a decomposition makes lies where its operands lie
  const auto functional = functional_of_out(op);
  if (functional && !is_left_to_libtorch(rules, op, *functional)) return write_out(*functional, op, *stack);
  if (functional) return op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, *stack);
  if (is_whole_op(op_name(op))) return dispatch_whole(op, stack);
  const auto service = service_of(rules, op);
  const bool decomposes = service.way == Service::kDecomposition || service.way == Service::kForeach;
  if (!decomposes) fail<BadInput>("{} has no sharding rule; {}", op_name(op), service.reason);
  if (service.way == Service::kDecomposition) bring_to_mesh(*stack, stack->size() - count, mesh);
  using Key = c10::DispatchKey;
  const bool any_form = op.hasKernelForDispatchKey(Key::CompositeExplicitAutograd);
  op.callBoxedForDispatchKey(any_form ? Key::CompositeExplicitAutograd : Key::CompositeExplicitAutogradNonFunctional,
                             *stack);
}

}  // namespace lockstep

// Calls of the forms that follow from others through the schema: out= forms, and foreach forms.
#include <ATen/Functions.h>

#include <set>

#include "fuzz/cases/text_cases.h"
#include "runtime/dispatch/functional_forms.h"
#include "runtime/dispatch/service.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

void append_empty_like(const c10::IValue& value, std::vector<c10::IValue>& outs) {
  if (value.isTensor()) {
    outs.emplace_back(at::zeros(value.toTensor().sizes(), value.toTensor().options()));
    return;
  }
  std::vector<at::Tensor> list;
  for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(at::zeros(tensor.sizes(), tensor.options()));
  outs.emplace_back(std::move(list));
}

/// The functional call's arguments by name, then tensors as its results are.
Stack out_arguments(const c10::OperatorHandle& functional, const c10::OperatorHandle& out, Stack given) {
  const auto& names = functional.schema().arguments();
  for (size_t i = given.size(); i < names.size(); ++i)
    given.push_back(names[i].default_value().value_or(c10::IValue()));
  Stack results = given, arguments;
  functional.callBoxed(results);
  for (const auto& argument : out.schema().arguments())
    if (has_argument(functional.schema(), argument.name()))
      arguments.push_back(given[argument_number(functional.schema(), argument.name())]);
  for (const auto& result : results) append_empty_like(result, arguments);
  return arguments;
}

/// One value of each type that foreach forms take.
c10::IValue foreach_argument(const c10::Argument& argument, const std::vector<Sizes>& sizes, Inputs& in) {
  const auto type = argument.type()->str();
  if (type == "Tensor[]") {
    std::vector<at::Tensor> list;
    for (const auto& each : sizes) list.push_back(at::mul(in.positive(each), 0.25));
    return list;
  }
  if (type == "Tensor") return at::scalar_tensor(0.5, in.dtype());
  if (type == "Scalar[]") return c10::IValue(c10::List<at::Scalar>({at::Scalar(0.5), at::Scalar(2)}));
  if (argument.default_value()) return *argument.default_value();
  if (type == "bool") return false;
  if (type == "number" || type == "Scalar") return at::Scalar(0.5);
  return {};
}

OpCase foreach_case(const c10::OperatorHandle& op) {
  return {op_name(op), kReal, [op](Inputs& in) {
            const std::vector<Sizes> sizes{{in.number(1, 5), in.number(1, 3)}, {in.number(1, 6)}};
            Stack stack;
            for (const auto& argument : op.schema().arguments()) stack.push_back(foreach_argument(argument, sizes, in));
            return stack;
          }};
}

}  // namespace

std::vector<OpCase> out_cases() {
  std::map<std::string, const OpCase*> by_name;
  static const auto decomposed = decomposed_cases();
  for (const auto& entry : op_cases()) by_name[entry.op] = &entry;
  for (const auto& entry : decomposed) by_name.try_emplace(entry.op, &entry);
  std::vector<OpCase> all;
  for (const auto& op : tensor_ops()) {
    const auto functional = functional_of_out(op);
    const auto found = functional ? by_name.find(op_name(*functional)) : by_name.end();
    if (found == by_name.end()) continue;
    const auto& entry = *found->second;
    if (entry.is(kFactory) && !entry.is(kOwnPeer)) continue;
    // LibTorch's own binary_cross_entropy.out gives another mean than the functional op; its dropout has another mask
    // of no elements; of uint64, which hash_tensor.out gives, it has no sums to scatter.
    const bool is_left_out = op_name(op) == "binary_cross_entropy.out" || op_name(op) == "native_dropout.out" ||
                             op_name(op) == "hash_tensor.out" ||
                             service_of(*built_in_rules(), op).way == Service::kMissing;
    if (is_left_out) continue;
    const auto draw = [op, functional = *functional, draw = entry.draw](Inputs& in) {
      return out_arguments(functional, op, draw(in));
    };
    // What is drawn has many digits: written as an average of ranks it is rounded.
    const unsigned others = kGradient | kFactory | (entry.is(kOwnPeer) ? kExact : 0u);
    all.push_back({op_name(op), entry.traits & ~others, draw});
  }
  return all;
}

std::vector<OpCase> foreach_cases() {
  std::vector<OpCase> all;
  for (const auto& op : tensor_ops())
    if (op_name(op).starts_with("_foreach_") && decomposition_is_tried(op_name(op))) all.push_back(foreach_case(op));
  return all;
}

}  // namespace lockstep::testing

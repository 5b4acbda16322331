#include "consistency/bounds/same_op.h"

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>

namespace lockstep::bounds {
namespace {

/// Results are doubles, whatever the call asks for.
bool is_dtype(const c10::Argument& argument) { return argument.name() == "dtype"; }

bool is_number(const c10::Argument& argument) {
  const auto type = argument.type();
  const auto* optional = type->castRaw<c10::OptionalType>();
  return (optional ? optional->getElementType()->kind() : type->kind()) == c10::TypeKind::NumberType;
}

bool is_float(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().is_floating_point();
}

c10::IValue as_double(const c10::IValue& value) {
  return is_float(value) ? value.toTensor().to(c10::kDouble, /*non_blocking=*/false, /*copy=*/true) : value;
}

std::vector<at::Tensor> run(const c10::FunctionSchema& schema, std::vector<c10::IValue> stack) {
  for (size_t a = 0; a < stack.size(); ++a)
    if (is_dtype(schema.arguments()[a]) && !stack[a].isNone()) stack[a] = static_cast<int64_t>(c10::kDouble);
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(schema.name().c_str(), schema.overload_name().c_str())
      .callBoxed(stack);
  std::vector<at::Tensor> results;
  for (const auto& value : stack)
    if (value.isTensor() && value.toTensor().defined()) results.push_back(value.toTensor());
  return results;
}

}  // namespace

std::vector<at::Tensor> of_magnitudes(const ExactCall& call) {
  std::vector<c10::IValue> stack;
  for (size_t a = 0; a < call.magnitudes.size(); ++a) {
    stack.push_back(as_double(call.magnitudes[a]));
    if (is_float(stack[a])) stack[a] = stack[a].toTensor().abs();
    if (is_number(call.schema.arguments()[a]) && !stack[a].isNone())
      stack[a] = at::Scalar(std::abs(stack[a].toScalar().toDouble()));
  }
  return run(call.schema, std::move(stack));
}

std::vector<at::Tensor> of_ones(const ExactCall& call) {
  std::vector<c10::IValue> stack(call.arguments.begin(), call.arguments.end());
  for (size_t a = 0; a < stack.size(); ++a) {
    if (is_float(stack[a])) stack[a] = at::ones_like(stack[a].toTensor(), c10::kDouble);
    if (is_number(call.schema.arguments()[a]) && !stack[a].isNone()) stack[a] = at::Scalar(1.0);
  }
  return run(call.schema, std::move(stack));
}

at::Tensor of_each(const ExactCall& call, at::Tensor (*function)(const at::Tensor&)) {
  std::vector<c10::IValue> stack;
  for (const auto& value : call.arguments) {
    stack.push_back(as_double(value));
    if (is_float(value)) stack.back() = function(stack.back().toTensor());
    if (value.isScalar() && is_number(call.schema.arguments()[stack.size() - 1]))
      stack.back() = at::Scalar(function(at::scalar_tensor(value.toScalar(), at::kDouble)).item<double>());
  }
  return run(call.schema, std::move(stack)).at(0);
}

std::vector<at::Tensor> linear_in(const ExactCall& call, std::string_view name) {
  std::vector<c10::IValue> stack;
  for (const auto& value : call.arguments) stack.push_back(as_double(value));
  for (size_t a = 0; a < stack.size(); ++a)
    if (call.schema.arguments()[a].name() == name) stack[a] = call.magnitude(name);
  auto results = run(call.schema, std::move(stack));
  for (auto& result : results) result = result.abs();
  return results;
}

}  // namespace lockstep::bounds

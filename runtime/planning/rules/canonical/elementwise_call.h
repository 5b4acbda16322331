#pragma once
#include <ATen/Functions.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "runtime/kernels/tensors/elementwise.h"
#include "runtime/planning/rules/canonical/leave_result.h"

/// What local calls that compute element by element have in common.
namespace lockstep::rules {

using Names = std::initializer_list<const char*>;

/// Computes in fp32 (or fp64) on contiguous memory, of the operands of these names, and rounds once.
template <class Compute>
void elementwise(const LocalCall& call, torch::jit::Stack& stack, Names operands, const Compute& compute) {
  const auto first = call.tensor(stack, *operands.begin());
  const auto dtype = first.scalar_type();
  std::vector<at::Tensor> wide;
  for (const auto* name : operands) {
    const auto x = call.tensor(stack, name);
    wide.push_back((dtype == c10::kDouble ? x : x.to(c10::kFloat)).contiguous());
  }
  const auto result = compute(wide);
  leave_result(call, stack, first, result, dtype);
}

/// Whether an operand lies on a GPU.
inline bool is_on_gpu(const LocalCall& call, const torch::jit::Stack& stack) {
  const auto is_there = [](const c10::IValue& value) { return value.isTensor() && value.toTensor().is_cuda(); };
  return std::any_of(stack.end() - static_cast<ptrdiff_t>(call.op.schema().arguments().size()), stack.end(), is_there);
}

/// "self" and "other", a number among them too, in fp32 (or fp64) on the GPU that has one of them.
inline std::pair<at::Tensor, at::Tensor> wide_operands(const LocalCall& call, const torch::jit::Stack& stack) {
  const auto self = call.tensor(stack, "self");
  const auto& other = call.argument(stack, "other");
  const auto& there = self.is_cuda() ? self : other.toTensor();
  const auto wide = call.plan.results[0]->dtype == c10::kDouble ? c10::kDouble : c10::kFloat;
  const auto options = there.options().dtype(wide);
  return {self.to(options), other.isTensor() ? other.toTensor().to(options) : at::full({}, other.toScalar(), options)};
}

/// Lockstep's own function of each element: LibTorch's go to MKL, whose last bits depend on the processor.
template <kernels::loops::Function kFunction>
void local_function(const LocalCall& call, torch::jit::Stack& stack) {
  const auto self = call.tensor(stack, "self");
  const auto result = kernels::apply(kFunction, self.to(call.plan.results[0]->dtype));
  leave_result(call, stack, self, result);
}

/// Computes in fp32 (or fp64) with each operation rounded, where LibTorch fuses them on some instruction sets.
template <class Compute>
void unfused(const LocalCall& call, torch::jit::Stack& stack, Names operands, const Compute& compute) {
  const auto dtype = call.plan.results[0]->dtype;
  if (!c10::isFloatingType(dtype)) return call.op.callBoxed(stack);
  const auto first = call.tensor(stack, *operands.begin());
  std::vector<at::Tensor> wide;
  for (const auto* name : operands)
    wide.push_back(call.tensor(stack, name).to(dtype == c10::kDouble ? c10::kDouble : c10::kFloat));
  const auto result = compute(wide);
  leave_result(call, stack, first, result, dtype);
}

/// With u = 1 + x rounded: log(u) x / (u - 1), which corrects for the rounding (Kahan); x where u is 1.
inline at::Tensor own_log1p(const at::Tensor& x) {
  const auto u = at::add(x, 1), logarithm = kernels::apply(kernels::loops::Function::kLog, u);
  const auto corrected = at::div(at::mul(logarithm, x), at::sub(u, 1));
  return at::where(at::eq(u, 1), x, at::where(at::isinf(u), logarithm, corrected));
}

/// With u = exp(x) rounded: (u - 1) x / log(u) (Kahan); x where u is 1.
inline at::Tensor own_expm1(const at::Tensor& x) {
  const auto u = kernels::apply(kernels::loops::Function::kExp, x.contiguous()), less = at::sub(u, 1);
  const auto corrected = at::div(at::mul(less, x), kernels::apply(kernels::loops::Function::kLog, u));
  const auto is_end = at::logical_or(at::eq(u, 0), at::isinf(u));
  return at::where(at::eq(u, 1), x, at::where(is_end, less, corrected));
}

}  // namespace lockstep::rules

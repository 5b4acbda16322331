// What canonical numerics changes in the op table: local calls whose bits depend on nothing but values and global
// indices. Elementwise ops that LibTorch computes with IEEE operations alone, or alike in vector loops and scalar tails
// (measured), stay as they are.
#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/planning/ordered_sums.h"
#include "runtime/planning/rules/canonical/canonical_forms.h"
#include "runtime/planning/rules/canonical/elementwise_call.h"
#include "runtime/planning/rules/canonical/leave_result.h"

namespace lockstep::rules {
namespace {

using kernels::loops::Function;
using kernels::loops::Gradient;

void local_sigmoid_backward(const LocalCall& call, torch::jit::Stack& stack) {
  elementwise(call, stack, {"grad_output", "output"},
              [](const auto& x) { return at::mul(at::mul(x[0], at::rsub(x[1], 1)), x[1]); });
}

void local_silu_backward(const LocalCall& call, torch::jit::Stack& stack) {
  elementwise(call, stack, {"grad_output", "self"},
              [](const auto& x) { return kernels::apply(Gradient::kSilu, x[0], x[1]); });
}

bool is_by_tanh(const LocalCall& call, const torch::jit::Stack& stack) {
  return call.argument(stack, "approximate").toStringRef() == "tanh";
}

void local_gelu(const LocalCall& call, torch::jit::Stack& stack) {
  if (is_by_tanh(call, stack)) return local_function<Function::kGeluByTanh>(call, stack);
  local_function<Function::kGelu>(call, stack);
}

void local_gelu_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const auto gradient = is_by_tanh(call, stack) ? Gradient::kGeluByTanh : Gradient::kGelu;
  elementwise(call, stack, {"grad_output", "self"},
              [gradient](const auto& x) { return kernels::apply(gradient, x[0], x[1]); });
}

/// LibTorch rounds 16-bit operands differently in vector loops and scalar tails: computed in fp32 and rounded once.
void local_rounded_once(const LocalCall& call, torch::jit::Stack& stack) {
  const auto is_short = [](const c10::IValue& value) {
    return value.isTensor() && value.toTensor().defined() &&
           (value.toTensor().scalar_type() == c10::kBFloat16 || value.toTensor().scalar_type() == c10::kHalf);
  };
  if (std::none_of(stack.begin(), stack.end(), is_short)) return call.op.callBoxed(stack);
  const auto self = call.tensor(stack, "self");
  for (auto& value : stack)
    if (is_short(value)) value = value.toTensor().to(c10::kFloat);
  call.op.callBoxed(stack);
  const auto result = stack.back().toTensor();
  leave_result(call, stack, self, result, call.plan.results[0]->dtype);
}

/// A product of complex numbers would be LibTorch's (complex.cpp).
void check_alpha(const LocalCall& call, const c10::Scalar& alpha) {
  if (c10::isComplexType(call.plan.results[0]->dtype) && !alpha.equal(1))
    fail<BadInput>("{} of complex numbers has no canonical form with alpha; multiply before", call.op.schema().name());
}

/// A scaled summand: LibTorch fuses the product and the sum in vector loops only; here both are rounded.
template <int kSign>
void local_add(const LocalCall& call, torch::jit::Stack& stack) {
  const auto given = call.argument(stack, "alpha").toScalar();
  const auto dtype = call.plan.results[0]->dtype;
  check_alpha(call, given);
  if (!c10::isFloatingType(dtype) || given.equal(1)) return local_rounded_once(call, stack);
  const double alpha = kSign * given.toDouble();
  const auto self = call.tensor(stack, "self");
  const auto& other = call.argument(stack, "other");
  const auto wide = dtype == c10::kDouble ? c10::kDouble : c10::kFloat;
  const auto summand = other.isTensor() ? at::mul(other.toTensor().to(wide), alpha)
                                        : at::scalar_tensor(other.toScalar().toDouble() * alpha, wide);
  const auto sum = at::add(self.to(wide), summand);
  leave_result(call, stack, self, sum, dtype);
}

/// LibTorch's kernels for GPUs multiply by the reciprocal of a divisor that the host has, and round a number of more
/// digits than the tensor beside it: there both are wide, and on the GPU.
void local_division(const LocalCall& call, torch::jit::Stack& stack) {
  const auto dtype = call.plan.results[0]->dtype;
  if (!is_on_gpu(call, stack) || !c10::isFloatingType(dtype)) return call.op.callBoxed(stack);
  const auto [x, y] = wide_operands(call, stack);
  leave_result(call, stack, call.tensor(stack, "self"), at::div(x, y), dtype);
}

/// x, or `least` where that is more: of two zeros x, which GPUs do not always give.
void leave_at_least(const LocalCall& call, torch::jit::Stack& stack, const c10::Scalar& least) {
  const auto self = call.tensor(stack, "self");
  const auto bound = at::full({}, least, self.options());
  leave_result(call, stack, self, at::where(at::lt(self, bound), bound, self));
}

void local_relu(const LocalCall& call, torch::jit::Stack& stack) {
  if (!is_on_gpu(call, stack)) return call.op.callBoxed(stack);
  leave_at_least(call, stack, 0);
}

void local_clamp_min(const LocalCall& call, torch::jit::Stack& stack) {
  if (!is_on_gpu(call, stack)) return call.op.callBoxed(stack);
  leave_at_least(call, stack, call.argument(stack, "min").toScalar());
}

void local_addcmul(const LocalCall& call, torch::jit::Stack& stack) {
  const auto factor = call.argument(stack, "value").toScalar();
  unfused(call, stack, {"self", "tensor1", "tensor2"},
          [&](const auto& x) { return at::add(x[0], at::mul(at::mul(x[1], factor), x[2])); });
}

/// From the nearer end.
void local_lerp(const LocalCall& call, torch::jit::Stack& stack) {
  const double weight = call.argument(stack, "weight").toScalar().toDouble();
  unfused(call, stack, {"self", "end"}, [&](const auto& x) {
    const auto way = at::sub(x[1], x[0]);
    return weight < 0.5 ? at::add(x[0], at::mul(way, weight)) : at::sub(x[1], at::mul(way, 1 - weight));
  });
}

void local_tanh_backward(const LocalCall& call, torch::jit::Stack& stack) {
  unfused(call, stack, {"grad_output", "output"},
          [](const auto& x) { return at::mul(x[0], at::rsub(at::mul(x[1], x[1]), 1)); });
}

void local_log1p(const LocalCall& call, torch::jit::Stack& stack) {
  elementwise(call, stack, {"self"}, [](const auto& x) { return own_log1p(x[0]); });
}

/// Powers that are multiplications or roots.
void local_power(const LocalCall& call, torch::jit::Stack& stack) {
  constexpr double kExact[] = {-2, -1, -0.5, 0.5, 1, 2, 3};
  const double exponent = call.argument(stack, "exponent").toScalar().toDouble();
  if (std::find(std::begin(kExact), std::end(kExact), exponent) == std::end(kExact))
    fail<BadInput>("pow with exponent {} has no canonical form; 0.5, 1, 2, 3 and -0.5, -1, -2 have one", exponent);
  if (exponent > -1 && exponent < 0 && call.tensor(stack, "self").is_cuda())  // by an approximation
    fail<BadInput>("pow with exponent {} has no canonical form on a GPU; use x.sqrt().reciprocal()", exponent);
  local_rounded_once(call, stack);
}

/// other - alpha x, each operation rounded: in 16 bits LibTorch rounds alpha x in scalar tails alone.
void local_rsub(const LocalCall& call, torch::jit::Stack& stack) {
  const auto other = call.argument(stack, "other").toScalar(), alpha = call.argument(stack, "alpha").toScalar();
  check_alpha(call, alpha);
  const bool rounds = call.tensor(stack, "self").is_floating_point();
  if (!rounds || !c10::isFloatingType(call.plan.results[0]->dtype)) return call.op.callBoxed(stack);
  elementwise(call, stack, {"self"}, [&](const auto& x) { return at::rsub(at::mul(x[0], alpha), other); });
}

constexpr CanonicalRule kElementwise[] = {
    {"add.Scalar", local_add<1>},
    {"add.Tensor", local_add<1>},
    {"addcdiv", local_rounded_once},
    {"addcmul", local_addcmul},
    {"clamp_min", local_clamp_min},
    {"cos", local_function<Function::kCos>},
    {"div.Scalar", local_division},
    {"div.Tensor", local_division},
    {"erf", local_function<Function::kErf>},
    {"exp", local_function<Function::kExp>},
    {"gelu", local_gelu},
    {"gelu_backward", local_gelu_backward},
    {"lerp.Scalar", local_lerp},
    {"log", local_function<Function::kLog>},
    {"log1p", local_log1p},
    {"pow.Tensor_Scalar", local_power},
    {"reciprocal", local_rounded_once},
    {"relu", local_relu},
    {"rsqrt", local_rounded_once},
    {"rsub.Scalar", local_rsub},
    {"sigmoid", local_function<Function::kSigmoid>},
    {"sigmoid_backward", local_sigmoid_backward},
    {"silu", local_function<Function::kSilu>},
    {"silu_backward", local_silu_backward},
    {"sin", local_function<Function::kSin>},
    {"sqrt", local_function<Function::kSqrt>},
    {"sub.Scalar", local_add<-1>},
    {"sub.Tensor", local_add<-1>},
    {"tanh", local_function<Function::kTanh>},
    {"tanh_backward", local_tanh_backward},
};

}  // namespace

std::span<const CanonicalRule> canonical_elementwise() { return kElementwise; }

}  // namespace lockstep::rules

// Ops that sum, average or maximise over dimensions: a cut of a reduced dimension leaves a Partial.
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <limits>

#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/shardings.h"

namespace lockstep::rules {
namespace {

OpSharding over_dims(const Call& call) {
  return reduced_over(call, call.dimensions("dim", call.dims(0)), call.argument("keepdim").toBool());
}

/// Sum of the shard divided by the *global* count.
void local_mean(const LocalCall& call, torch::jit::Stack& stack) {
  const auto input = call.tensor(stack, "self");
  const bool all = call.op.operator_name().overload_name.empty();
  std::vector<int64_t> dims;
  if (!all && !call.argument(stack, "dim").isNone()) dims = call.argument(stack, "dim").toIntVector();
  const bool keep = !all && call.argument(stack, "keepdim").toBool();
  const auto& spec = *call.plan.wanted[0];
  const auto results = static_cast<double>(call.plan.results[0]->element_count());
  const double count = results > 0 ? static_cast<double>(spec.element_count()) / results : 1;
  const auto& asked = call.argument(stack, "dtype");
  const auto dtype = asked.isNone() ? input.scalar_type() : asked.toScalarType();
  stack = {at::sum(input.to(dtype), dims, keep).div_(count)};
}

at::Scalar least_value(c10::ScalarType dtype) {
  if (c10::isFloatingType(dtype)) return -std::numeric_limits<double>::infinity();
  if (dtype == c10::kBool) return false;
  return AT_DISPATCH_INTEGRAL_TYPES(dtype, "amax", [] { return at::Scalar(std::numeric_limits<scalar_t>::lowest()); });
}

/// The maximum over no elements is the smallest value there is.
void local_amax(const LocalCall& call, torch::jit::Stack& stack) {
  const auto input = call.tensor(stack, "self");
  if (input.numel() > 0) return call.op.callBoxed(stack);
  stack = {at::full(call.plan.results[0]->local_sizes[call.index], least_value(input.scalar_type()), input.options())};
}

/// Which of two zeros LibTorch's vectors keep depends on where they lie: of zeros, +0.
void one_zero(torch::jit::Stack& stack) {
  const auto result = stack.back().toTensor();
  if (result.is_floating_point()) stack = {at::add(result, 0)};
}

void local_canonical_amax(const LocalCall& call, torch::jit::Stack& stack) { local_amax(call, stack), one_zero(stack); }
void local_canonical_amin(const LocalCall& call, torch::jit::Stack& stack) {
  local_unless_empty(call, stack), one_zero(stack);
}

constexpr Rule kRows[] = {
    {"amax", "reduction", "all but dims; max", "-", Rule::kMax, over_dims, nullptr, local_amax},
    {"mean", "reduction", "...->", "e", Rule::kPlain, reduced_over_all, nullptr, local_mean},
    {"mean.dim", "reduction", "all but dims", "e", Rule::kPlain, over_dims, nullptr, local_mean},
    {"sum", "reduction", "...->", "e", Rule::kPlain, reduced_over_all},
    {"sum.dim_IntList", "reduction", "all but dims", "e", Rule::kPlain, over_dims},
};

}  // namespace

std::span<const CanonicalRule> canonical_reductions() {
  static constexpr CanonicalRule kForms[] = {{"amax", local_canonical_amax}, {"amin", local_canonical_amin}};
  return kForms;
}

std::span<const Rule> reductions() { return kRows; }

}  // namespace lockstep::rules

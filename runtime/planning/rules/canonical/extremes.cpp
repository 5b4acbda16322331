// The larger and the smaller of two, medians, and signs. +0 and -0 are equal: which of them LibTorch gives differs
// between its vector loops and their scalar tails. Here it is the first one. The sign of a NaN is what instructions
// made it: here it has none.
#include <ATen/Functions.h>

#include "runtime/planning/rules/canonical/canonical_forms.h"
#include "runtime/planning/rules/canonical/leave_result.h"

namespace lockstep::rules {
namespace {

using at::Tensor;

Tensor larger(const Tensor& x, const Tensor& y) { return at::where(at::eq(x, y), x, at::maximum(x, y)); }
Tensor smaller(const Tensor& x, const Tensor& y) { return at::where(at::eq(x, y), x, at::minimum(x, y)); }

/// Of "self" and each of these arguments that is given.
void leave(const LocalCall& call, torch::jit::Stack& stack, const char* low, const char* high) {
  const auto self = call.tensor(stack, "self");
  auto result = self;
  if (low && !call.argument(stack, low).isNone()) result = larger(result, call.tensor(stack, low));
  if (high && !call.argument(stack, high).isNone()) result = smaller(result, call.tensor(stack, high));
  leave_result(call, stack, self, result);
}

void local_maximum(const LocalCall& call, torch::jit::Stack& stack) { leave(call, stack, "other", nullptr); }
void local_minimum(const LocalCall& call, torch::jit::Stack& stack) { leave(call, stack, nullptr, "other"); }
void local_clamp(const LocalCall& call, torch::jit::Stack& stack) { leave(call, stack, "min", "max"); }
void local_clamp_min(const LocalCall& call, torch::jit::Stack& stack) { leave(call, stack, "min", nullptr); }
void local_clamp_max(const LocalCall& call, torch::jit::Stack& stack) { leave(call, stack, nullptr, "max"); }

/// Of a whole tensor LibTorch takes elements as they lie in memory: of equal zeros it is +0.
void local_median(const LocalCall& call, torch::jit::Stack& stack) {
  call.op.callBoxed(stack);
  stack = {at::add(stack[0].toTensor(), 0)};
}

void local_signbit(const LocalCall& call, torch::jit::Stack& stack) {
  const auto self = call.tensor(stack, "self");
  leave_result(call, stack, self, at::signbit(self).logical_and(at::eq(self, self)));
}

void local_copysign(const LocalCall& call, torch::jit::Stack& stack) {
  const auto self = call.tensor(stack, "self"), other = call.tensor(stack, "other");
  leave_result(call, stack, self, at::copysign(self, other.masked_fill(at::isnan(other), 0)));
}

constexpr CanonicalRule kForms[] = {
    {"clamp.Tensor", local_clamp},
    {"clamp_max.Tensor", local_clamp_max},
    {"clamp_min.Tensor", local_clamp_min},
    {"copysign.Tensor", local_copysign},
    {"maximum", local_maximum},
    {"median", local_median},
    {"minimum", local_minimum},
    {"nanmedian", local_median},
    {"signbit", local_signbit},
};

}  // namespace

std::span<const CanonicalRule> canonical_extremes() { return kForms; }

}  // namespace lockstep::rules

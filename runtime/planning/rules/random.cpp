// Ops that draw: values depend on the global index of an element, never on the rank that draws it.
#include "runtime/context/random.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "rng/stream.h"
#include "runtime/context/op_id.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::rules {
namespace {

std::vector<ResultShape> dropout_shapes(const Call& call) {
  return {{call.operand_sizes[0], {}, call.operand_dtypes[0]}, {call.operand_sizes[0], {}, c10::kBool}};
}

/// Outside of training, or with a probability of 0, nothing is drawn.
bool drops_anything(std::span<const c10::IValue> arguments) {
  return (arguments[2].isNone() || arguments[2].toBool()) && arguments[1].toDouble() > 0;
}

void local_dropout(const LocalCall& call, torch::jit::Stack& stack) {
  const auto x = stack[0].toTensor();
  const double probability = stack[1].toDouble();
  if (probability < 0 || probability > 1) fail<BadInput>("dropout probability {} should be in [0, 1]", probability);
  const bool draws = stack[2].isNone() || stack[2].toBool();
  const double keep = draws ? 1 - probability : 1;
  auto mask = at::ones(x.sizes(), x.options().dtype(c10::kBool));
  if (keep < 1)
    mask = draw_local(*call.plan.results[1], call.index, rng::bernoulli(keep), RandomScope::seed(), call.stream,
                      BatchScope::rows());
  stack = {at::mul(x.contiguous(), mask.to(x.scalar_type()).mul_(keep > 0 ? 1 / keep : 0.0)), mask};
}

std::vector<ResultShape> dropout_backward_shape(const Call& call) {
  return {{call.operand_sizes[0], {}, call.operand_dtypes[0]}};
}

void local_dropout_backward(const LocalCall&, torch::jit::Stack& stack) {
  const auto gradient = stack[0].toTensor();
  const auto scale = stack[1].toTensor().to(gradient.scalar_type()).mul_(stack[2].toDouble());
  stack = {at::mul(gradient.contiguous(), scale.contiguous())};
}

/// Draws in the declared dtype, into the operand when the op is the in-place form.
void draw_into(const LocalCall& call, torch::jit::Stack& stack, const rng::Distribution& distribution) {
  auto values =
      draw_local(*call.plan.results[0], call.index, distribution, RandomScope::seed(), call.stream, BatchScope::rows());
  const auto self = stack[0].toTensor();
  stack = {call.plan.written >= 0 ? self.copy_(values) : values.to(self.scalar_type())};
}

void local_normal(const LocalCall& call, torch::jit::Stack& stack) {
  draw_into(call, stack, rng::normal(stack[1].toDouble(), stack[2].toDouble()));
}

void local_uniform(const LocalCall& call, torch::jit::Stack& stack) {
  draw_into(call, stack, rng::uniform(stack[1].toDouble(), stack[2].toDouble()));
}

constexpr Rule kRows[] = {
    {"native_dropout", "random", "...->...,...", "-", Rule::kRandom, nullptr, dropout_shapes, local_dropout,
     drops_anything},
    {"native_dropout_backward", "pointwise", "...,...->...", "e-", Rule::kPlain, nullptr, dropout_backward_shape,
     local_dropout_backward},
    {"normal", "random", "...->...", "-", Rule::kRandom, nullptr, nullptr, local_normal},
    {"uniform", "random", "...->...", "-", Rule::kRandom, nullptr, nullptr, local_uniform},
};

}  // namespace

std::span<const Rule> random() { return kRows; }

}  // namespace lockstep::rules

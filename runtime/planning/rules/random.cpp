// Ops that draw: values depend on the global index of an element, never on the rank that draws it.
#include "runtime/context/random.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>

#include "core/error.h"
#include "rng/stream.h"
#include "runtime/context/run_context.h"
#include "runtime/planning/draws/drawn.h"
#include "runtime/planning/draws/elements.h"
#include "runtime/planning/draws/integers.h"
#include "runtime/planning/draws/multinomial.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/planning/rules/canonical/leave_result.h"

namespace lockstep::rules {
namespace {

std::vector<ResultShape> dropout_shapes(const Call& call) {
  return {{call.operand_sizes[0], {}, call.operand_dtypes[0]}, {call.operand_sizes[0], {}, c10::kBool}};
}

/// Outside of training, or with a probability of 0, nothing is drawn.
bool drops_anything(const c10::FunctionSchema& schema, std::span<const c10::IValue> arguments) {
  const auto& train = arguments[argument_number(schema, "train")];
  return (train.isNone() || train.toBool()) && arguments[argument_number(schema, "p")].toDouble() > 0;
}

void local_dropout(const LocalCall& call, torch::jit::Stack& stack) {
  const auto x = call.tensor(stack, "input");
  const double probability = call.argument(stack, "p").toDouble();
  if (!(probability >= 0 && probability <= 1))
    fail<BadInput>("dropout probability {} should be in [0, 1]", probability);
  const double keep = drops_anything(call.op.schema(), stack) ? 1 - probability : 1;
  auto mask = at::ones(x.sizes(), x.options().dtype(c10::kBool));
  if (keep < 1)
    mask = draw_local(*call.plan.results[1], call.index, rng::bernoulli(keep), call.context.seed(), call.stream,
                      call.context.rows());
  stack = {at::mul(x.contiguous(), mask.to(x.scalar_type()).mul_(keep > 0 ? 1 / keep : 0.0)), mask};
}

std::vector<ResultShape> dropout_backward_shape(const Call& call) {
  return {{at::infer_size(call.sizes_of("grad_output"), call.sizes_of("mask")), {}, call.dtype_of("grad_output")}};
}

void local_dropout_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const auto gradient = call.tensor(stack, "grad_output");
  const auto scale =
      call.tensor(stack, "mask").to(gradient.scalar_type()).mul_(call.argument(stack, "scale").toDouble());
  stack = {at::mul(gradient.contiguous(), scale.contiguous())};
}

/// Draws in the declared dtype, into the operand when the op is the in-place form.
void draw_into(const LocalCall& call, torch::jit::Stack& stack, const rng::Distribution& distribution) {
  auto values = draw_local(*call.plan.results[0], call.index, distribution, call.context.seed(), call.stream,
                           call.context.rows());
  const auto self = call.tensor(stack, "self");
  leave_result(call, stack, self, values, self.scalar_type());
}

void local_normal(const LocalCall& call, torch::jit::Stack& stack) {
  draw_into(call, stack, rng::normal(call.argument(stack, "mean").toDouble(), call.argument(stack, "std").toDouble()));
}

void local_uniform(const LocalCall& call, torch::jit::Stack& stack) {
  const double low = call.argument(stack, "from").toDouble(), high = call.argument(stack, "to").toDouble();
  const bool is_point = low <= high && high <= low;
  draw_into(call, stack, is_point ? rng::bernoulli(1, low) : rng::uniform(low, high));
}

/// Each element by itself, in the place of one of the first operand.
constexpr Rule draw_row(const char* op, LocalFunction local) {
  return {op, "random", "...->...", "-", Rule::kRandom, nullptr, draws::like_first, local};
}
constexpr Rule normal_row(const char* op, const char* dims) {
  return {op, "random", dims, "-", Rule::kRandom, nullptr, draws::normal_shape, draws::normal_of_tensors};
}

constexpr Rule kRows[] = {
    draw_row("bernoulli.p", draws::bernoulli),
    {"bernoulli.Tensor", "random", "...,...->...", "-", Rule::kRandom, nullptr, draws::bernoulli_shape,
     draws::bernoulli_of_tensor},
    draw_row("cauchy", draws::cauchy),
    draw_row("exponential", draws::exponential),
    draw_row("geometric", draws::geometric),
    draw_row("log_normal", draws::log_normal),
    {"multinomial", "random", "...K->...S", "-", Rule::kRandom, nullptr, draws::multinomial_shape, draws::multinomial},
    {"native_dropout", "random", "...->...,...", "-", Rule::kRandom, nullptr, dropout_shapes, local_dropout,
     drops_anything},
    {"native_dropout_backward", "pointwise", "...,...->...", "e-", Rule::kPlain, nullptr, dropout_backward_shape,
     local_dropout_backward},
    {"normal", "random", "...->...", "-", Rule::kRandom, nullptr, nullptr, local_normal},
    normal_row("normal.Tensor_Tensor", "...,...->..."),
    normal_row("normal.Tensor_float", "...->..."),
    normal_row("normal.float_Tensor", "...->..."),
    draw_row("normal_functional", local_normal),
    draw_row("random", draws::random),
    draw_row("random.from", draws::random_between),
    draw_row("random.to", draws::random_to),
    {"randperm.generator", "factory", "->a", "-", Rule::kRandom, nullptr, draws::permutation_shape, draws::permutation},
    {"uniform", "random", "...->...", "-", Rule::kRandom, nullptr, nullptr, local_uniform},
};

}  // namespace

std::span<const Rule> random() { return kRows; }

}  // namespace lockstep::rules

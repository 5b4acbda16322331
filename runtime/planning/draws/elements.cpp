#include "runtime/planning/draws/elements.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>

#include <numbers>

#include "core/elementary/elementary.h"
#include "core/error.h"
#include "runtime/kernels/tensors/elementwise.h"
#include "runtime/planning/draws/drawn.h"

namespace lockstep::draws {
namespace {

using at::Tensor;
using kernels::loops::Function;

double number(const LocalCall& call, const torch::jit::Stack& stack, std::string_view name) {
  return call.argument(stack, name).toDouble();
}

void check_positive(const LocalCall& call, std::string_view name, double value) {
  if (!(value > 0)) fail<BadInput>("{}: {} is {}, expected more than 0", call.op.schema().name(), name, value);
}

Tensor open_logarithm(const LocalCall& call) { return logarithm(drawn_open(call, *call.plan.results[0])); }

Tensor tangent(const Tensor& x) {
  if (!x.is_cpu()) return at::tan(x);
  return at::div(kernels::apply(Function::kSin, x), kernels::apply(Function::kCos, x));
}

/// log(1 - p), corrected for the rounding of 1 - p (Kahan).
double log_of_rest(double p) {
  const double rest = 1 - p, lost = 1 - rest;
  return lost > 0 ? elementary::log(rest) * (p / lost) : -p;
}

Tensor tensor_of(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor().to(c10::kDouble) : at::scalar_tensor(value.toDouble(), c10::kDouble);
}

}  // namespace

void exponential(const LocalCall& call, torch::jit::Stack& stack) {
  const double rate = number(call, stack, "lambd");
  check_floating(call), check_positive(call, "lambda", rate);
  give(call, stack, at::div(at::neg(open_logarithm(call)), rate));
}

void cauchy(const LocalCall& call, torch::jit::Stack& stack) {
  const double median = number(call, stack, "median"), width = number(call, stack, "sigma");
  check_floating(call), check_positive(call, "sigma", width);
  const auto angle = at::mul(at::sub(drawn_open(call, *call.plan.results[0]), 0.5), std::numbers::pi);
  give(call, stack, at::add(at::mul(tangent(angle), width), median));
}

void log_normal(const LocalCall& call, torch::jit::Stack& stack) {
  const double mean = number(call, stack, "mean"), deviation = number(call, stack, "std");
  check_floating(call), check_positive(call, "std", deviation);
  const auto normal = drawn(call, c10::kDouble, rng::normal(mean, deviation));
  give(call, stack, normal.is_cpu() ? kernels::apply(Function::kExp, normal) : at::exp(normal));
}

void geometric(const LocalCall& call, torch::jit::Stack& stack) {
  const double p = number(call, stack, "p");
  if (!(p > 0 && p < 1)) fail<BadInput>("geometric_: p is {}, expected a number between 0 and 1", p);
  give(call, stack, at::ceil(at::div(open_logarithm(call), log_of_rest(p))));
}

void bernoulli(const LocalCall& call, torch::jit::Stack& stack) {
  give(call, stack, drawn(call, c10::kBool, rng::bernoulli(number(call, stack, "p"))));
}

void bernoulli_of_tensor(const LocalCall& call, torch::jit::Stack& stack) {
  const auto p = call.tensor(stack, "p").to(c10::kDouble);
  const auto in_range = at::logical_and(at::ge(p, 0), at::le(p, 1));
  if (!in_range.all().item<bool>()) fail<BadInput>("bernoulli_: a probability is not in [0, 1]");
  give(call, stack, at::lt(drawn(call, c10::kDouble, rng::uniform()), p));
}

std::vector<ResultShape> bernoulli_shape(const Call& call) {
  const auto& sizes = call.sizes_of("self");
  const auto& of_p = call.sizes_of("p");
  if (!at::is_expandable_to(of_p, sizes))
    fail<BadInput>("{}: p has sizes {}, which do not broadcast to {}", call.op, c10::str(of_p), c10::str(sizes));
  if (!c10::isFloatingType(call.dtype_of("p")))
    fail<BadInput>("{}: probabilities are real numbers, not {}", call.op, c10::toString(call.dtype_of("p")));
  return {{sizes, {}, call.dtype_of("self")}};
}

/// Both operations are rounded: LibTorch may fuse them in vector loops.
void normal_of_tensors(const LocalCall& call, torch::jit::Stack& stack) {
  check_floating(call);
  const auto mean = tensor_of(call.argument(stack, "mean")), deviation = tensor_of(call.argument(stack, "std"));
  if (deviation.numel() > 0 && !deviation.min().ge(0).item<bool>())
    fail<BadInput>("normal: a standard deviation is below 0");
  const auto normal = drawn(call, c10::kDouble, rng::normal());
  give(call, stack, at::add(at::mul(normal, deviation.to(normal.device())), mean.to(normal.device())));
}

std::vector<ResultShape> normal_shape(const Call& call) {
  auto sizes = call.operand_sizes[0];
  for (const auto& other : call.operand_sizes) sizes = at::infer_size(sizes, other);
  for (const auto dtype : call.operand_dtypes)
    if (c10::isComplexType(dtype)) fail<BadInput>("{}: mean and std are real numbers", call.op);
  return {{sizes, {}, call.operand_dtypes[0]}};
}

}  // namespace lockstep::draws

// Canonical results and gradients against LibTorch's in float64. bit_difference() cannot see what a mesh and one rank
// do wrong alike; this does.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <rapidcheck.h>

#include "fuzz/calls/reference.h"
#include "fuzz/trials/canonical_trial.h"

namespace lockstep::testing {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Of a dtype: the relative error of one rounding, and beyond what nothing is compared: an exponential on the way is
/// infinite before the result is.
struct Precision {
  double unit, largest;
};
Precision precision(c10::ScalarType dtype) {
  if (dtype == c10::kBFloat16) return {0x1p-8, 0x1p100};
  if (dtype == c10::kFloat) return {0x1p-24, 0x1p100};
  return {0x1p-53, 0x1p1022};
}

/// The call with floating operands of one sign: what it gives is as large as sums without cancellation get.
OpCall of_magnitudes(const OpCall& call) {
  OpCall other = call;
  Tensors tensors;
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const auto tensor = call.tensor(i);
    tensors.push_back(tensor.is_floating_point() ? tensor.abs() : tensor);
  }
  other.arguments = with_tensors(call, tensors);
  return other;
}

LinearFunctions magnitudes(LinearFunctions functions) {
  for (auto* weights : {&functions.first, &functions.second})
    for (auto& weight : *weights) weight = weight.abs();
  return functions;
}

/// The largest magnitude among the elements that `dtype` can hold; 0 of none.
double largest(const at::Tensor& tensor, c10::ScalarType dtype) {
  if (!tensor.defined() || tensor.numel() == 0) return 0;
  const auto size = tensor.to(c10::kDouble).abs();
  return at::where(size <= precision(dtype).largest, size, at::zeros_like(size)).max().item<double>();
}

/// The largest operand, 1 at most: differences of numbers like these may cancel, as 1 - y does.
double cancelled(const OpCall& call, const LinearFunctions& functions) {
  double most = 0;
  for (size_t i = 0; i < call.slots.size(); ++i)
    if (call.tensor(i).is_floating_point()) most = std::max(most, largest(call.tensor(i), c10::kDouble));
  for (const auto* weights : {&functions.first, &functions.second})
    for (const auto& weight : *weights) most = std::max(most, largest(weight, c10::kDouble));
  return std::min(most, 1.0);
}

/// Roundings that a result goes through, generously: a wrong formula, a missing term or a lower precision is far more.
constexpr double kRoundings = 4096, kNarrowRoundings = 16;

/// Empty, or how far one result is off. Where float64 gives more than the dtype holds, nothing is compared.
std::string distance(const at::Tensor& actual, const at::Tensor& expected, double scale) {
  if (actual.sizes() != expected.sizes()) return c10::str("has sizes ", actual.sizes(), " for ", expected.sizes());
  const auto dtype = actual.scalar_type();
  const auto [unit, most] = precision(dtype);
  const auto wide = expected.to(c10::kDouble), error = (actual.to(c10::kDouble) - wide).abs();
  const double bound = scale * unit * (dtype == c10::kBFloat16 ? kNarrowRoundings : kRoundings) + 1e-37;
  // A NaN that both give, or neither.
  const auto nan = at::isnan(actual.to(c10::kDouble)), far = wide.abs() > most;
  const auto wrong = at::where(at::isnan(wide), at::logical_not(nan), at::logical_not(error <= bound));
  const auto counted = at::logical_and(wrong, at::logical_not(far));
  if (!counted.any().item<bool>()) return {};
  const auto place = counted.reshape({-1}).to(c10::kLong).argmax().item<int64_t>();
  return fmt::format("is {:.9g} for {:.9g} at place {}, bound {:.3g}",
                     actual.reshape({-1})[place].to(c10::kDouble).item<double>(),
                     wide.reshape({-1})[place].item<double>(), place, bound);
}

std::string distance(const Tensors& actual, const Tensors& expected, const Tensors& sizes, double least) {
  for (size_t r = 0; r < actual.size(); ++r) {
    if (!actual[r].defined()) continue;
    const auto zeros = at::zeros(actual[r].sizes(), at::kDouble);
    const auto& wide = expected[r].defined() ? expected[r] : zeros;
    const auto dtype = actual[r].scalar_type();
    const auto what = distance(actual[r], wide, std::max({largest(wide, dtype), largest(sizes[r], dtype), least}));
    if (!what.empty()) return fmt::format("result {} {}", r, what);
  }
  return {};
}

}  // namespace

void canonical_values_are_close(const OpCase& op_case, Reach reach, bool gradients,
                                std::shared_ptr<const RuleSet> rules) {
  auto trial = draw_canonical(op_case, reach, gradients);
  trial.rounded_levels = 0;  // they round on purpose
  // Second derivatives cancel, and overflow where float32 ends and float64 does not: their bits alone are compared.
  trial.functions.second.clear();
  const auto outcome = on_one_rank(trial, std::move(rules));
  if (!outcome.refusal.empty() || (gradients && trial.functions.first.empty())) return;
  const auto dtype = trial.call.slots.empty() ? c10::kFloat : trial.call.tensor(0).scalar_type();
  for (size_t i = 0; gradients && i < trial.call.slots.size(); ++i)
    if (trial.call.tensor(i).scalar_type() == c10::kBFloat16) return;  // rounded between the ops of a formula
  const Numerics numerics{dtype, false, Domain::kFloat64};
  const auto in_float64 = [&](const OpCall& call, const LinearFunctions& functions) {
    return gradients ? reference_gradients(op_case, call, functions, numerics) : reference(op_case, call, numerics);
  };
  const auto what = distance(outcome.tensors, in_float64(trial.call, trial.functions),
                             in_float64(of_magnitudes(trial.call), magnitudes(trial.functions)),
                             cancelled(trial.call, trial.functions));
  if (!what.empty()) RC_FAIL(describe(trial) + ": " + what);
  ++compared_cases()[op_case.op];
}

}  // namespace lockstep::testing

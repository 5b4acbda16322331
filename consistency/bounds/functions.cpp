// Elementary functions and what is made of them. A vector library's function is within 3.5 units in the last place of
// the exact one (SLEEF 3.6, "u35" functions, the coarsest that LibTorch calls), which is 7 roundings.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "consistency/bounds/families.h"

namespace lockstep::bounds {
namespace {

constexpr double kFunction = 7;

at::Tensor result(const ExactCall& call) { return call.exact[0].abs(); }

at::Tensor function(const ExactCall& call) { return call.rounded(kFunction + 1, result(call)); }

/// x^y = exp(y log x): the exponent's rounding errors grow by its size.
template <class Exponent>
at::Tensor power_of(const ExactCall& call, const Exponent& exponent) {
  const auto log = call.tensor("self").abs().log();
  const auto size = at::where(log.isfinite(), (log * exponent).abs(), at::zeros_like(log));
  return call.rounded(2 * kFunction, result(call) * (1 + size));
}
/// Small whole exponents are products, and roots quotients, each stored.
at::Tensor power(const ExactCall& call) {
  return power_of(call, call.number("exponent")) + call.stored(3, result(call));
}
at::Tensor power_by_tensor(const ExactCall& call) { return power_of(call, call.tensor("exponent")); }

/// 0 where the exponential is too large: smaller than the smallest numbers.
at::Tensor logistic_of(const at::Tensor& x) { return x.sigmoid() + 0x1p-100; }

/// 1 / (1 + exp(-x)).
at::Tensor logistic(const ExactCall& call) { return call.rounded(kFunction + 5, result(call)); }
/// x / (1 + exp(-x)).
at::Tensor gate(const ExactCall& call) {
  return call.rounded(kFunction + 6, call.magnitude("self") * logistic_of(call.tensor("self")));
}

/// x (1 + f(x)) / 2, where 1 + f may cancel: an error of |x|.
at::Tensor error_gate(const ExactCall& call) { return call.rounded(2 * kFunction + 10, call.magnitude("self")); }
/// g (F(x) + x F'(x)), with |F|, |x F'| <= 1.2 and the exponent's rounding errors.
at::Tensor error_gate_gradient(const ExactCall& call) {
  return call.rounded(2 * kFunction + 18, call.magnitude("grad_output") * (1 + call.magnitude("self")));
}

/// g y (1 - y).
at::Tensor logistic_gradient(const ExactCall& call) {
  const auto output = call.magnitude("output");
  return call.rounded(4, call.magnitude("grad_output") * output * (1 + output));
}
/// g (1 - y^2).
at::Tensor tangent_gradient(const ExactCall& call) {
  return call.rounded(4, call.magnitude("grad_output") * (1 + call.magnitude("output").square()));
}

/// s (1 + x (1 - s)) with s = logistic(x), of magnitudes.
at::Tensor gate_slope(const at::Tensor& x) {
  const auto s = logistic_of(x);
  return s * (1 + x.abs() * (1 + s));
}
at::Tensor gate_gradient(const ExactCall& call) {
  return call.rounded(2 * kFunction + 10, call.magnitude("grad_output") * gate_slope(call.tensor("self")));
}

/// silu(gate) * up, both in dimension -2.
at::Tensor gated(const ExactCall& call) {
  const auto both = call.tensor("both");
  const auto gate = both.select(-2, 0);
  return call.rounded(kFunction + 7, gate.abs() * logistic_of(gate) * both.select(-2, 1).abs());
}
at::Tensor gated_gradient(const ExactCall& call) {
  const auto both = call.tensor("both"), gradient = call.magnitude("gradient");
  const auto gate = both.select(-2, 0), up = both.select(-2, 1).abs();
  const auto of_gate = gradient * up * gate_slope(gate);
  const auto of_up = gradient * gate.abs() * logistic_of(gate);
  return call.rounded(2 * kFunction + 11, at::stack({of_gate, of_up}, -2));
}

constexpr Row kRows[] = {
    row<function>("acos"),
    row<function>("acosh"),
    row<function>("asin"),
    row<function>("asinh"),
    row<function>("atan"),
    row<function>("atanh"),
    row<function>("cosh"),
    row<function>("erfc"),
    row<function>("exp2"),
    row<function>("expm1"),
    row<function>("log10"),
    row<function>("log2"),
    row<function>("sinh"),
    row<function>("tan"),
    row<function>("cos"),
    row<function>("erf"),
    row<function>("exp"),
    row<error_gate>("gelu"),
    row<error_gate_gradient>("gelu_backward"),
    row<function>("log"),
    row<function>("log1p"),
    row<power>("pow.Tensor_Scalar"),
    row<power_by_tensor>("pow.Tensor_Tensor"),
    row<logistic>("sigmoid"),
    row<logistic_gradient>("sigmoid_backward"),
    row<gate>("silu"),
    row<gate_gradient>("silu_backward"),
    row<function>("sin"),
    row<function>("tanh"),
    row<tangent_gradient>("tanh_backward"),
    row<gated>("mesh::swiglu"),
    row<gated_gradient>("mesh::swiglu_backward"),
};

}  // namespace

std::span<const Row> functions() { return kRows; }

}  // namespace lockstep::bounds

// Elementary functions of two numbers, and such that one function is made of others (functions.cpp).
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "consistency/bounds/families.h"

namespace lockstep::bounds {
namespace {

constexpr double kFunction = 7;

at::Tensor result(const ExactCall& call) { return call.exact[0].abs(); }

at::Tensor function(const ExactCall& call) { return call.rounded(kFunction + 1, result(call)); }

/// 0 or pi of a real number.
at::Tensor angle(const ExactCall& call) { return call.rounded_as_stored(2, result(call)); }

/// x log(y), x log(1 + y), -x log(x).
at::Tensor logarithm_times(const ExactCall& call) { return call.rounded_as_stored(kFunction + 3, result(call)); }

/// m + log(1 + exp(-d)): the difference's roundings are d u exp(-d), below u; the exponential is at most 1.
at::Tensor sum_of_exponentials(const ExactCall& call) {
  const auto largest = at::maximum(call.magnitude("self"), call.magnitude("other")).nan_to_num(0, 0, 0);
  return call.rounded(2 * kFunction + 4, largest + 1) + call.stored(4, largest + 1);
}

/// log(x / (1 - x)), x from eps to 1 - eps, if that is given: 1 - x and the quotient are rounded, an error of 3 u. At
/// 1 - eps, which is rounded, 1 - x is wrong by u / eps of itself.
at::Tensor log_odds(const ExactCall& call) {
  auto all = result(call) + 1;
  if (!call.argument("eps").isNone()) {
    const double eps = call.number("eps");
    all = all + (call.tensor("self") >= (1 - eps) * (1 - 0x1p-7)).to(c10::kDouble) / eps;
  }
  return call.rounded_as_stored(kFunction + 1, all);
}
/// g / (x (1 - x)), and 0 below eps and above 1 - eps, which may be rounded the other way.
at::Tensor log_odds_gradient(const ExactCall& call) {
  const auto x = call.tensor("self");
  const auto all = call.magnitude("grad_output") / (x * (1 - x)).abs();
  auto allowed = call.rounded_as_stored(5, all);
  if (call.argument("eps").isNone()) return allowed;
  const double eps = call.number("eps");
  const auto to_edge = at::minimum((x - eps).abs(), (x - (1 - eps)).abs());
  return allowed + all * (to_edge <= 2 * (call.unit + call.stored_unit)).to(c10::kDouble);
}

/// base^x = exp(x log(base)): the exponent's rounding errors grow by its size.
at::Tensor power_of_number(const ExactCall& call) {
  const double log = std::log(std::abs(call.number("self")));
  const auto size = std::isfinite(log) ? (log * call.tensor("exponent")).abs() : at::zeros_like(call.exact[0]);
  return call.rounded(2 * kFunction, result(call) * (1 + size));
}

/// sin(z) / z, z = pi x: what is wrong of z is wrong of the sine, and divided by z.
at::Tensor sine_over(const ExactCall& call) { return call.rounded_as_stored(1, 4 + (kFunction + 5) * result(call)); }

/// self + w (end - self), or from the other end.
at::Tensor between(const ExactCall& call) {
  const auto weight = call.tensor("weight");
  const auto both = call.magnitude("self") + call.magnitude("end");
  return call.rounded_as_stored(6, both * (1 + weight.abs() + (1 - weight).abs()));
}

/// other - alpha self.
at::Tensor other_less(const ExactCall& call) {
  return call.rounded_as_stored(3, std::abs(call.number("alpha")) * call.magnitude("self") + call.magnitude("other"));
}

constexpr Row kRows[] = {
    row<angle>("angle"),
    row<function>("atan2"),
    row<function>("hypot"),
    row<between>("lerp.Tensor"),
    row<sum_of_exponentials>("logaddexp"),
    row<sum_of_exponentials>("logaddexp2"),
    row<log_odds>("logit"),
    row<log_odds_gradient>("logit_backward"),
    row<power_of_number>("pow.Scalar"),
    row<other_less>("rsub.Tensor"),
    row<sine_over>("sinc"),
    row<logarithm_times>("special_entr"),
    row<logarithm_times>("special_xlog1py"),
    row<logarithm_times>("xlogy.Tensor"),
};

}  // namespace

std::span<const Row> function_pairs() { return kRows; }

}  // namespace lockstep::bounds

// Ops that compute each element from a few others by sums, products and quotients.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "consistency/bounds/families.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep::bounds {
namespace {

at::Tensor result(const ExactCall& call) { return call.exact[0].abs(); }

/// self + alpha * other: alpha is rounded, the product, the sum.
at::Tensor sum_of_two(const ExactCall& call) {
  return call.rounded_as_stored(3, call.magnitude("self") + std::abs(call.number("alpha")) * call.magnitude("other"));
}
at::Tensor sum_with_number(const ExactCall& call) {
  return call.rounded_as_stored(3, call.magnitude("self") + std::abs(call.number("alpha") * call.number("other")));
}
at::Tensor number_less(const ExactCall& call) {
  return call.rounded_as_stored(
      3, std::abs(call.number("alpha")) * call.magnitude("self") + std::abs(call.number("other")));
}

at::Tensor product(const ExactCall& call) {
  return call.rounded_as_stored(2, call.magnitude("self") * call.magnitude("other"));
}
at::Tensor product_with_number(const ExactCall& call) {
  return call.rounded_as_stored(2, call.magnitude("self") * std::abs(call.number("other")));
}
/// A quotient may be a product with the reciprocal.
at::Tensor quotient(const ExactCall& call) {
  return call.rounded_as_stored(3, call.magnitude("self") / call.tensor("other").abs());
}
at::Tensor quotient_by_number(const ExactCall& call) {
  return call.rounded_as_stored(3, call.magnitude("self") / std::abs(call.number("other")));
}

at::Tensor added_product(const ExactCall& call) {
  return call.rounded_as_stored(5, call.magnitude("self") + std::abs(call.number("value")) * call.magnitude("tensor1") *
                                                                call.magnitude("tensor2"));
}
at::Tensor added_quotient(const ExactCall& call) {
  return call.rounded_as_stored(6, call.magnitude("self") + std::abs(call.number("value")) * call.magnitude("tensor1") /
                                                                call.tensor("tensor2").abs());
}

/// self + w (end - self), or from the other end.
at::Tensor between(const ExactCall& call) {
  const double weight = call.number("weight");
  const auto both = call.magnitude("self") + call.magnitude("end");
  return call.rounded_as_stored(6, both * (1 + std::abs(weight) + std::abs(1 - weight)));
}

at::Tensor rounded_once(const ExactCall& call) { return call.rounded_as_stored(2, result(call)); }
at::Tensor reciprocal_root(const ExactCall& call) { return call.rounded_as_stored(4, result(call)); }

/// Into another dtype, perhaps: that its numbers are rounded once more is not counted here (ErrorBound::allowed).
at::Tensor copied(const ExactCall& call) { return call.rounded_as_stored(1, call.magnitude("src")); }
at::Tensor cast(const ExactCall& call) { return call.rounded_as_stored(1, call.magnitude("self")); }

at::Tensor dropout_gradient(const ExactCall& call) {
  return call.rounded_as_stored(3, call.magnitude("grad_output") * std::abs(call.number("scale")));
}
std::vector<at::Tensor> dropout(const ExactCall& call) { return {call.rounded_as_stored(3, result(call)), {}}; }

/// Each result is the sum or the difference of two products: with magnitudes, the larger of turning one way or the
/// other.
at::Tensor turned(const ExactCall& call) {
  const auto x = call.magnitude("x"), cosines = call.magnitude("cosines"), sines = call.magnitude("sines");
  const auto forth = mesh_ops::rotate_pairs(x, cosines, sines, false);
  const auto back = mesh_ops::rotate_pairs(x, cosines, sines, true);
  return call.rounded_as_stored(6, at::maximum(forth.abs(), back.abs()));
}

/// A sum of n elements by log2(n) stages, and the scale.
at::Tensor transformed(const ExactCall& call) {
  const auto x = call.magnitude("x");
  const auto stages = std::log2(static_cast<double>(x.size(-1)));
  return call.rounded_as_stored(stages + 1, x.sum(-1, true).expand_as(x) * std::abs(call.number("scale")));
}

constexpr Row kRows[] = {
    row<cast>("_to_copy"),
    row<sum_with_number>("add.Scalar"),
    row<sum_of_two>("add.Tensor"),
    row<added_quotient>("addcdiv"),
    row<added_product>("addcmul"),
    row<copied>("copy"),
    row<quotient_by_number>("div.Scalar"),
    row<quotient>("div.Tensor"),
    row<between>("lerp.Scalar"),
    row<product_with_number>("mul.Scalar"),
    row<product>("mul.Tensor"),
    {"native_dropout", {ErrorBound::Kind::kRounded, dropout}},
    row<dropout_gradient>("native_dropout_backward"),
    row<rounded_once>("reciprocal"),
    row<reciprocal_root>("rsqrt"),
    row<number_less>("rsub.Scalar"),
    row<rounded_once>("sqrt"),
    row<rounded_once>("square"),
    row<sum_with_number>("sub.Scalar"),
    row<sum_of_two>("sub.Tensor"),
    row<transformed>("mesh::hadamard_transform"),
    row<turned>("mesh::rotate_pairs"),
};

}  // namespace

std::span<const Row> elementwise() { return kRows; }

}  // namespace lockstep::bounds

// Products of complex numbers, of which LibTorch's vector loops and scalar tails round different terms: each of the
// four products and both sums are rounded.
#include <ATen/Functions.h>

#include <algorithm>
#include <iterator>

#include "runtime/planning/rules/canonical/canonical_forms.h"
#include "runtime/planning/rules/canonical/elementwise_call.h"
#include "runtime/planning/rules/canonical/leave_result.h"

namespace lockstep::rules {
namespace {

using at::Tensor;

Tensor complex_product(const Tensor& x, const Tensor& y) {
  const auto a = at::real(x), b = at::imag(x), c = at::real(y), d = at::imag(y);
  return at::complex(at::sub(at::mul(a, c), at::mul(b, d)), at::add(at::mul(a, d), at::mul(b, c)));
}

void local_product(const LocalCall& call, torch::jit::Stack& stack) {
  const auto dtype = call.plan.results[0]->dtype;
  const bool is_complex = c10::isComplexType(dtype), is_short = c10::isReducedFloatingType(dtype);
  if (!is_complex && !(is_short && is_on_gpu(call, stack))) return call.op.callBoxed(stack);
  const auto self = call.tensor(stack, "self");
  if (!is_complex) {  // a GPU rounds a number of more digits than the tensor beside it
    const auto [x, y] = wide_operands(call, stack);
    return leave_result(call, stack, self, at::mul(x, y), dtype);
  }
  const auto& other = call.argument(stack, "other");
  const auto factor = other.isTensor() ? other.toTensor().to(dtype) : at::scalar_tensor(other.toScalar(), dtype);
  const auto product = complex_product(self.to(dtype), factor);
  leave_result(call, stack, self, product);
}

constexpr CanonicalRule kForms[] = {{"mul.Scalar", local_product}, {"mul.Tensor", local_product}};

/// Of those that are canonical as they are, the ones that calculate.
constexpr std::string_view kOfRealAlone[] = {"abs", "cumprod", "sgn", "square"};
/// Forms that take complex numbers.
constexpr std::string_view kOfComplexToo[] = {"add.Scalar",  "add.Tensor", "mul.Scalar", "mul.Tensor",
                                              "rsub.Scalar", "sub.Scalar", "sub.Tensor"};

bool is_in(std::span<const std::string_view> names, std::string_view op) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

}  // namespace

std::span<const CanonicalRule> canonical_complex() { return kForms; }

bool takes_complex(std::string_view op, bool own_form) {
  return own_form ? is_in(kOfComplexToo, op) : !is_in(kOfRealAlone, op);
}

}  // namespace lockstep::rules

// AdamW: m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, p = p (1 - lr decay) - lr (m / c1) / (sqrt(v / c2) + epsilon).
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "consistency/bounds/families.h"

namespace lockstep::bounds {
namespace {

constexpr double kMean = 6, kSquare = 10;

/// `exact` holds what was written: parameter, mean, square.
std::vector<at::Tensor> adamw(const ExactCall& call) {
  const double beta1 = call.number("beta1"), rate = call.number("learning_rate");
  const auto gradient = call.magnitude("gradient") * std::abs(call.number("gradient_scale"));
  const auto mean = beta1 * call.magnitude("mean") + (1 - beta1) * gradient;
  const auto square = call.exact[2].abs();
  const auto root = (square / call.number("correction2")).sqrt() + call.number("epsilon");
  const auto update = rate * mean / call.number("correction1") / root;
  const auto parameter = call.magnitude("parameter") * (1 + rate * call.number("weight_decay"));
  return {call.rounded(kMean + kSquare + 12, parameter + update), call.rounded(kMean, mean),
          call.rounded(kSquare, square)};
}

constexpr Row kRows[] = {{"mesh::adamw", {ErrorBound::Kind::kRounded, adamw}}};

}  // namespace

std::span<const Row> optimizer() { return kRows; }

}  // namespace lockstep::bounds

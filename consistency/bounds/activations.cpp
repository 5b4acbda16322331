// Activations in pieces, and made of exponentials. A piece is chosen by an operand, which is exact: only where it is
// chosen by what was rounded may the choice fall the other way.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

#include "consistency/bounds/families.h"
#include "consistency/bounds/same_op.h"

namespace lockstep::bounds {
namespace {

constexpr double kFunction = 7;
/// exp() of more may be too large for fp32.
constexpr double kLargestExponent = 85, kNoBound = std::numeric_limits<double>::infinity();

at::Tensor gradient(const ExactCall& call) { return call.magnitude("grad_output"); }

/// One product, with a factor that may be rounded itself.
at::Tensor scaled(const ExactCall& call) { return call.rounded_as_stored(3, call.exact[0].abs()); }
/// The same of gradients.
std::vector<at::Tensor> scaled_gradients(const ExactCall& call) {
  auto allowed = linear_in(call, "grad_output");
  for (auto& each : allowed) each = call.rounded_as_stored(3, each);
  return allowed;
}

/// x scale, or (exp(x input_scale) - 1) alpha scale, which may be a difference: for x below 0.
at::Tensor exponential_piece(const at::Tensor& exponent, double factor) {
  return std::abs(factor) * (exponent.exp() * (1 + exponent.abs()) + 1);
}
at::Tensor exponential_unit(const ExactCall& call) {
  const auto x = call.tensor("self");
  const double scale = call.number("scale"), input_scale = call.number("input_scale");
  const auto below = exponential_piece(x.clamp_max(0) * input_scale, call.number("alpha") * scale);
  const auto all = at::where(x > 0, x.abs() * std::abs(scale), below);
  return call.rounded(kFunction + 5, all) + call.stored(4, all);
}
at::Tensor exponential_unit_gradient(const ExactCall& call) {
  const auto x = call.tensor("self_or_result");
  const double scale = std::abs(call.number("scale")), input_scale = call.number("input_scale");
  const double factor = std::abs(call.number("alpha") * scale);
  const auto exponent = x.clamp_max(0) * input_scale;
  const auto below =
      call.argument("is_result").toBool() ? x.abs() + factor : factor * exponent.exp() * (1 + exponent.abs());
  const auto slope = at::where(x > 0, at::full({}, scale, x.options()), below * std::abs(input_scale));
  const auto all = gradient(call) * slope;
  return call.rounded(kFunction + 7, all) + call.stored(5, all);
}

/// min(max(x + 3, 0), 6) / 6, and x times that.
at::Tensor hard_logistic_of(const at::Tensor& x) { return (x.abs() + 3).clamp_max(6) / 6; }
at::Tensor hard_logistic(const ExactCall& call) {
  return call.rounded_as_stored(4, hard_logistic_of(call.tensor("self")));
}
at::Tensor hard_gate(const ExactCall& call) {
  const auto x = call.tensor("self");
  return call.rounded_as_stored(6, x.abs() * hard_logistic_of(x));
}
/// g (x / 3 + 1 / 2) in the middle.
at::Tensor hard_gate_gradient(const ExactCall& call) {
  const auto x = call.magnitude("self");
  const auto slope = at::where(x <= 3, x / 3 + 0.5, at::ones_like(x));
  return call.rounded_as_stored(6, gradient(call) * slope);
}

/// x - lambda or x + lambda outside of what is 0; it is continuous there.
at::Tensor shrunk(const ExactCall& call) {
  const auto x = call.magnitude("self");
  const double lambda = std::abs(call.number("lambd"));
  return call.rounded_as_stored(3, (x + lambda).masked_fill(x < 0.9 * lambda, 0));
}

/// Of y = beta x: log(1 + exp(y)) / beta up to a threshold, x beyond. Where the product's rounding may choose, what the
/// two differ by counts.
struct SoftPiece {
  at::Tensor y, is_near, is_beyond;
};
SoftPiece soft_piece(const ExactCall& call) {
  const auto y = call.tensor("self") * call.number("beta");
  const double threshold = call.number("threshold");
  const auto reach = 4 * (call.unit + call.stored_unit) * (y.abs() + std::abs(threshold));
  return {y, ((y - threshold).abs() <= reach).to(c10::kDouble), y > threshold};
}

at::Tensor without_overflow(const at::Tensor& allowed, const SoftPiece& piece) {
  const auto is_large = at::logical_and(piece.y > kLargestExponent, at::logical_not(piece.is_beyond));
  return allowed.masked_fill(is_large, kNoBound);
}

at::Tensor soft_relu(const ExactCall& call) {
  const auto piece = soft_piece(call);
  const double beta = std::abs(call.number("beta"));
  const auto value = at::softplus(piece.y), beyond = at::softplus(-piece.y.abs());
  const auto all = (value + piece.y.sigmoid() * piece.y.abs()) / beta;
  return without_overflow(
      call.rounded(2 * kFunction + 4, all) + call.stored(2, all) + (piece.is_near * beyond + 0x1p-120) / beta, piece);
}
at::Tensor soft_relu_gradient(const ExactCall& call) {
  const auto piece = soft_piece(call);
  const auto slope = piece.y.sigmoid(), g = gradient(call);
  const auto all = g * at::where(piece.is_beyond, at::ones_like(slope), slope * (1 + piece.y.abs()));
  return without_overflow(
      call.rounded(kFunction + 7, all) + call.stored(4, all) + piece.is_near * g * (-piece.y).sigmoid() + 0x1p-120 * g,
      piece);
}

/// x tanh(log(1 + exp(x))): each function keeps what is wrong in proportion.
at::Tensor soft_gate(const ExactCall& call) {
  const auto x = call.tensor("self");
  return call.rounded(3 * kFunction + 6, call.exact[0].abs()) + (cut_exponential(x) + 0x1p-124) * x.abs();
}

/// a / (1 + exp(-b)), halves of a dimension.
at::Tensor gated_half(const ExactCall& call) {
  const auto halves = call.tensor("self").chunk(2, call.argument("dim").toInt());
  return call.rounded(kFunction + 7, halves[0].abs() * (halves[1].sigmoid() + 0x1p-100));
}
/// g s and g a s (1 - s), s = 1 / (1 + exp(-b)), which is stored.
at::Tensor gated_half_gradient(const ExactCall& call) {
  const auto dim = call.argument("dim").toInt();
  const auto halves = call.tensor("self").chunk(2, dim);
  const auto s = halves[1].sigmoid() + 0x1p-100, of_value = gradient(call) * s;
  const auto all = at::cat({of_value, of_value * halves[0].abs() * (1 + s)}, dim);
  return call.rounded(4 * kFunction + 4, all) + call.stored(6, all);
}

constexpr Row kRows[] = {
    row<scaled>("_prelu_kernel"),
    {"_prelu_kernel_backward", {ErrorBound::Kind::kRounded, scaled_gradients}},
    row<exponential_unit>("elu"),
    row<exponential_unit_gradient>("elu_backward"),
    row<gated_half>("glu"),
    row<gated_half_gradient>("glu_backward"),
    row<hard_logistic>("hardsigmoid"),
    {"hardsigmoid_backward", {ErrorBound::Kind::kRounded, scaled_gradients}},
    row<hard_gate>("hardswish"),
    row<hard_gate_gradient>("hardswish_backward"),
    row<scaled>("leaky_relu"),
    {"leaky_relu_backward", {ErrorBound::Kind::kRounded, scaled_gradients}},
    row<soft_gate>("mish"),
    row<shrunk>("softshrink"),
    row<soft_relu>("softplus"),
    row<soft_relu_gradient>("softplus_backward"),
};

}  // namespace

std::span<const Row> activations() { return kRows; }

}  // namespace lockstep::bounds

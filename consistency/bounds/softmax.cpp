// Softmax and cross-entropy. p = exp(x - m) / sum exp(x - m): the difference x - m is rounded, which multiplies the
// exponential by 1 + u |x - m|; the sum has n roundings, and of each summand what it has itself.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

#include "consistency/bounds/families.h"

namespace lockstep::bounds {
namespace {

/// Of an exponential, its rounding and those of a quotient (functions.cpp).
constexpr double kExponential = 10;
/// exp() of more may be too large for fp32.
constexpr double kLargestExponent = 85, kNoBound = std::numeric_limits<double>::infinity();

/// A row of softmax, and how its roundings count.
struct Rows {
  at::Tensor depth;     ///< |x - m|
  at::Tensor weighted;  ///< sum of p |x - m|
  double length;
};

Rows rows_of(const at::Tensor& x, int64_t dim) {
  const auto depth = x.amax(dim, /*keepdim=*/true) - x;
  const auto finite = at::where(depth.isfinite(), depth, at::zeros_like(depth));
  const auto weighted = (x.softmax(dim) * finite).sum(dim, /*keepdim=*/true);
  return {finite, weighted, x.dim() == 0 ? 1.0 : static_cast<double>(x.size(dim))};
}

/// 16-bit exponentials and their sum may be stored (SoftMaxKernel.cpp of LibTorch's CPU kernels).
at::Tensor softmax(const ExactCall& call) {
  const auto rows = rows_of(call.tensor("self"), call.argument("dim").toInt());
  return call.rounded(1, call.exact[0] * (rows.depth + rows.weighted + rows.length + 2 * kExponential)) +
         call.stored(4, call.exact[0]) + cut_exponential(-rows.depth);
}

/// x - m - log(sum). Of 16-bit numbers sum and logarithm are stored.
at::Tensor log_softmax(const ExactCall& call) {
  const auto rows = rows_of(call.tensor("self"), call.argument("dim").toInt());
  const auto log_sum = (call.exact[0] + rows.depth).abs();
  const auto finite = at::where(log_sum.isfinite(), log_sum, at::zeros_like(log_sum));
  return call.rounded(1, 2 * rows.depth + kExponential * finite + rows.weighted + rows.length + kExponential) +
         call.stored(1, 1 + finite);
}

double length_of(const ExactCall& call) {
  const auto output = call.tensor("output");
  return output.dim() == 0 ? 1.0 : static_cast<double>(output.size(call.argument("dim").toInt()));
}

/// g y - y sum(g y). Of 16-bit numbers the sum is stored.
at::Tensor softmax_gradient(const ExactCall& call) {
  const auto product = call.magnitude("grad_output") * call.magnitude("output");
  const auto sum = product.sum(call.argument("dim").toInt(), /*keepdim=*/true);
  const auto of_sum = call.magnitude("output") * sum;
  return call.rounded(length_of(call) + 5, product + of_sum) + call.stored(1, of_sum);
}

/// g - exp(y) sum(g).
at::Tensor log_softmax_gradient(const ExactCall& call) {
  const auto gradient = call.magnitude("grad_output");
  const auto sum = gradient.sum(call.argument("dim").toInt(), /*keepdim=*/true);
  const auto of_sum = call.tensor("output").exp() * sum;
  return call.rounded(length_of(call) + kExponential + 2, gradient + of_sum) + call.stored(1, of_sum) +
         cut_exponential(call.tensor("output")) * sum;
}

/// sum of exp(logits - shift).
at::Tensor exponential_sum(const ExactCall& call) {
  const auto logits = call.tensor("logits");
  const auto difference = logits - call.tensor("shift").unsqueeze(-1);
  const auto finite = at::where(difference.isfinite(), difference.abs(), at::zeros_like(difference));
  const auto length = static_cast<double>(logits.size(-1));
  const auto summands = difference.exp() * (finite + length + kExponential);
  return call.rounded(1, summands.sum(-1)) + cut_exponential(difference).sum(-1);
}

/// g (exp(logits - log_sum) - [is the target]).
at::Tensor cross_entropy_gradient(const ExactCall& call) {
  const auto logits = call.tensor("logits"), target = call.tensor("target");
  const auto difference = logits - call.tensor("log_sum").unsqueeze(-1);
  const auto finite = at::where(difference.isfinite(), difference.abs(), at::zeros_like(difference));
  const auto classes = at::arange(logits.size(-1), target.options());
  const auto is_target = (target.unsqueeze(-1) == classes).to(c10::kDouble);
  const auto slope = (difference.exp() * (1 + finite) + is_target).masked_fill(difference > kLargestExponent, kNoBound);
  const auto gradient = call.magnitude("gradient").unsqueeze(-1);
  return call.rounded(kExponential + 3, gradient * slope) + cut_exponential(difference) * gradient;
}

constexpr Row kRows[] = {
    row<log_softmax>("_log_softmax"),
    row<log_softmax_gradient>("_log_softmax_backward_data"),
    row<softmax>("_softmax"),
    row<softmax_gradient>("_softmax_backward_data"),
    row<cross_entropy_gradient>("mesh::cross_entropy_backward"),
    row<exponential_sum>("mesh::exponential_sum"),
};

}  // namespace

at::Tensor cut_exponential(const at::Tensor& exponent) {
  constexpr double kFirstCut = -85.5, kLoss = 0x1p-124;
  return (exponent < kFirstCut).to(c10::kDouble) * kLoss;
}

std::span<const Row> softmax() { return kRows; }

}  // namespace lockstep::bounds

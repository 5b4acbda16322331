// Variances, norms, and logarithms of sums of exponentials, along dimensions.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <limits>

#include "consistency/bounds/families.h"
#include "runtime/planning/plan.h"

namespace lockstep::bounds {
namespace {

/// Roundings of an elementary function, and of an exponential with what follows it (functions.cpp, softmax.cpp).
constexpr double kFunction = 7, kExponential = 10;
constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// The dimensions that a call reduces; all if it names none.
std::vector<int64_t> dims_of(const ExactCall& call) {
  const auto& dim = call.argument("dim");
  auto dims = dim.isNone() ? std::vector<int64_t>{} : dim.toIntVector();
  for (int64_t d = 0; dims.empty() && d < call.tensor("self").dim(); ++d) dims.push_back(d);
  return dims;
}

bool keeps(const ExactCall& call) { return call.argument("keepdim").toBool(); }

at::Tensor sum_along(const ExactCall& call, const at::Tensor& values) {
  return values.dim() == 0 ? values : values.sum(dims_of(call), keeps(call));
}

/// How many elements one of a reduction's results is made of.
double count(const ExactCall& call) {
  double elements = 1;
  const auto self = call.tensor("self");
  for (const int64_t d : dims_of(call)) elements *= self.dim() == 0 ? 1 : static_cast<double>(self.size(d));
  return elements;
}

/// One pass that corrects mean and sum of squares (Welford), two passes, or joined parts: the errors of the means, at
/// most n u times the mean magnitude so far, meet distances from them. By Cauchy and Schwarz, and since the squares of
/// means so far come to at most 4 sums of squares (Hardy), all of it is within 24 n u times the sum of squares (Chan,
/// Golub and LeVeque, "Algorithms for computing the sample variance", 1983, have the same n and squares).
at::Tensor variance_error(const ExactCall& call) {
  const double n = count(call);
  const auto& correction = call.argument("correction");
  const double degrees = n - (correction.isNone() ? 1 : correction.toScalar().toDouble());
  const auto squares = sum_along(call, call.magnitude("self").square());
  return call.rounded(24 * (n + 4), squares / std::max(degrees, 1e-30));
}

/// |sqrt(a) - sqrt(b)| is at most |a - b| / sqrt(b), and at most the root of |a - b|.
at::Tensor deviation_error(const ExactCall& call) {
  const auto of_variance = variance_error(call);
  const auto deviation = call.exact[0].abs();
  return at::minimum(of_variance.sqrt(), of_variance / deviation.clamp_min(1e-300)) + call.rounded(2, deviation);
}

at::Tensor mean_error(const ExactCall& call) {
  const double n = std::max(1.0, count(call));
  return call.rounded(n + 3, sum_along(call, call.magnitude("self")) / n);
}

std::vector<at::Tensor> variance_and_mean(const ExactCall& call) { return {variance_error(call), mean_error(call)}; }
std::vector<at::Tensor> deviation_and_mean(const ExactCall& call) { return {deviation_error(call), mean_error(call)}; }

double order_of(const ExactCall& call) {
  const auto& order = call.argument(has_argument(call.schema, "ord") ? "ord" : "p");
  return order.isNone() ? 2 : order.toScalar().toDouble();
}

/// (sum of |x|^p)^(1/p): powers have the roundings of their exponents (functions.cpp); the root divides all by p. What
/// is too small for a normal number is lost; nothing is said of powers that may be too large, or nearly lost.
at::Tensor general_norm(const ExactCall& call, double p) {
  const auto self = call.magnitude("self");
  const auto logs = self.log(), sizes = at::where(logs.isfinite(), (logs * p).abs(), at::zeros_like(logs));
  const auto powers = self.pow(p), sum = sum_along(call, powers);
  const auto of_powers = sum_along(call, powers * (2 * kFunction) * (1 + sizes)) / sum.clamp_min(1e-300);
  const auto of_root = 2 * kFunction * (1 + sum.log().abs());
  const double lost = count(call) * 0x1p-126 / call.unit;
  const auto roundings = (of_powers + count(call) + lost / sum + of_root) / std::abs(p) + 1;
  const auto allowed = call.rounded(1, call.exact[0].abs() * roundings);
  const auto is_plain = at::logical_and(sum<0x1p120, sum> 0x1p-100);
  return at::where(is_plain, allowed, at::full({}, kNoBound, allowed.options()));
}

/// The root keeps half of the sum's roundings; of squares that are too small, the root of what is lost.
at::Tensor length_error(const ExactCall& call) {
  const auto squares = sum_along(call, call.magnitude("self").square());
  const auto allowed = call.rounded(count(call) / 2 + 4, call.exact[0].abs()) + std::sqrt(count(call)) * 0x1p-63;
  return at::where(squares < 0x1p120, allowed, at::full({}, kNoBound, allowed.options()));
}

bool is(double order, int whole) { return order >= whole && order <= whole; }

at::Tensor norm(const ExactCall& call) {
  const double p = order_of(call);
  if (std::isinf(p)) return call.rounded(1, call.exact[0].abs());
  if (is(p, 0)) return call.rounded(count(call), call.exact[0].abs());
  if (is(p, 1)) return call.rounded(count(call) + 1, call.exact[0].abs());
  return is(p, 2) ? length_error(call) : general_norm(call, p);
}

/// m + log(sum of exp(x - m)), as in softmax.cpp. 16-bit steps are stored in 16 bits.
at::Tensor log_sum(const ExactCall& call) {
  const auto self = call.tensor("self");
  const auto dims = dims_of(call);
  const auto m = self.dim() == 0 ? self : self.amax(dims, /*keepdim=*/true);
  const auto depth = (m - self).nan_to_num(0, 0, 0);
  const auto sum = sum_along(call, (-depth).exp());
  const auto weighted = sum_along(call, (-depth).exp() * depth) / sum.clamp_min(1);
  const auto largest = self.dim() == 0 ? m.abs() : self.abs().amax(dims, keeps(call));
  const auto last = weighted + 3 * (call.exact[0].abs() + largest).nan_to_num(0, 0, 0);
  return call.rounded(1, last + count(call) + 2 * kExponential) + call.stored(1, last + 6);
}

/// Each step adds log(1 + exp(less - more)) to the larger one: an error of at most 12 u, and u of the sum so far; what
/// was wrong before is multiplied by 1 at most.
at::Tensor running_log_sum(const ExactCall& call) {
  const auto sums = call.exact[0].abs().nan_to_num(0, 0, 0) + 12;
  return call.rounded_as_stored(1, sums.dim() == 0 ? 2 * sums : (2 * sums).cumsum(call.argument("dim").toInt()));
}

constexpr Row kRows[] = {
    row<norm>("linalg_vector_norm"),
    row<running_log_sum>("logcumsumexp"),
    row<log_sum>("logsumexp"),
    row<norm>("norm.ScalarOpt_dim"),
    row<norm>("norm.ScalarOpt_dim_dtype"),
    row<deviation_error>("std.correction"),
    {"std_mean.correction", {ErrorBound::Kind::kRounded, deviation_and_mean}},
    row<variance_error>("var.correction"),
    {"var_mean.correction", {ErrorBound::Kind::kRounded, variance_and_mean}},
};

}  // namespace

std::span<const Row> statistics() { return kRows; }

}  // namespace lockstep::bounds

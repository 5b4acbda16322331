// Losses of elements, their sum or their mean, and what goes back to the elements.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>

#include <limits>

#include "consistency/bounds/families.h"
#include "consistency/bounds/same_op.h"
#include "runtime/planning/plan.h"

namespace lockstep::bounds {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

int64_t reduction_of(const ExactCall& call) { return call.argument("reduction").toInt(); }

/// Elements have `roundings`, which are of `magnitude`; their sum has one for each of them. 16-bit losses of elements
/// are stored before they are added up.
at::Tensor reduced(const ExactCall& call, double roundings, const at::Tensor& magnitude) {
  const auto each = call.rounded_as_stored(roundings, magnitude);
  if (reduction_of(call) == at::Reduction::None) return each;
  const double n = std::max<double>(1, static_cast<double>(magnitude.numel()));
  const auto total = each.sum() + call.rounded(n + 3, magnitude.sum()) + call.stored(2, magnitude.sum());
  return reduction_of(call) == at::Reduction::Sum ? total : total / n;
}

at::Tensor distance(const ExactCall& call) { return (call.tensor("self") - call.tensor("target")).abs(); }

/// What comes back to each element; of a mean, a share of it.
at::Tensor share(const ExactCall& call, const at::Tensor& elements) {
  const double n = std::max<double>(1, static_cast<double>(elements.numel()));
  return call.magnitude("grad_output") / (reduction_of(call) == at::Reduction::Mean ? n : 1);
}

at::Tensor square(const ExactCall& call) { return reduced(call, 4, distance(call).square()); }
at::Tensor square_gradient(const ExactCall& call) {
  const auto d = distance(call);
  return call.rounded_as_stored(6, 2 * d * share(call, d));
}

/// d^2 / 2 up to `limit`, then limit (d - limit / 2), all of it times `factor`. Value and slope of both are equal at
/// the limit: which is taken there decides nothing but a rounding.
at::Tensor bent_square(const ExactCall& call, double limit, double factor) {
  const auto d = distance(call);
  return reduced(call, 8, at::where(d < limit / 2, d.square() / 2, limit * (d + limit / 2)) * factor);
}
at::Tensor huber(const ExactCall& call) { return bent_square(call, call.number("delta"), 1); }
at::Tensor smooth_distance(const ExactCall& call) {
  const double beta = call.number("beta");
  return beta > 0 ? bent_square(call, beta, 1 / beta) : reduced(call, 4, distance(call));
}

at::Tensor huber_gradient(const ExactCall& call) {
  const auto d = distance(call);
  return call.rounded_as_stored(6, d.clamp_max(call.number("delta")) * share(call, d));
}
at::Tensor smooth_distance_gradient(const ExactCall& call) {
  const auto d = distance(call);
  const auto slope = (d / call.number("beta")).nan_to_num(1).clamp_max(1);
  return call.rounded_as_stored(6, slope * share(call, d));
}

at::Tensor weighted(const ExactCall& call, const at::Tensor& values) {
  return call.argument("weight").isTensor() ? values * call.magnitude("weight") : values;
}

/// (t - 1) log(1 - x) - t log(x), logarithms from -100. That 1 - x is rounded is an error of u.
at::Tensor cross_entropy(const ExactCall& call) {
  const auto x = call.tensor("self"), t = call.tensor("target");
  const auto of_one = (1 - t).abs() * ((-x).log1p().clamp_min(-100).abs() + 1);
  const auto of_other = t.abs() * x.log().clamp_min(-100).abs();
  return reduced(call, 14, weighted(call, of_one + of_other));
}
/// g (x - t) / ((1 - x) x), the divisor at least 1e-12.
at::Tensor cross_entropy_gradient(const ExactCall& call) {
  const auto x = call.tensor("self");
  const auto slope = distance(call) / ((1 - x) * x).clamp_min(1e-12);
  return call.rounded_as_stored(9, weighted(call, slope) * share(call, x));
}

/// -w x of each sample's class; their sum, over the sum of weights in a mean. Nothing is said of a mean with weights of
/// both signs.
std::vector<at::Tensor> picked(const ExactCall& call) {
  const double n = static_cast<double>(call.tensor("target").numel());
  const auto all = of_magnitudes(call);
  auto loss = call.rounded_as_stored(2 * n + 7, all.at(0).abs());
  const bool has_negative = call.argument("weight").isTensor() && call.tensor("weight").lt(0).any().item<bool>();
  if (has_negative && reduction_of(call) == at::Reduction::Mean) loss = at::full_like(loss, kNoBound);
  return {loss, call.rounded_as_stored(n + 1, all.at(1))};
}
at::Tensor picked_gradient(const ExactCall& call) { return call.rounded_as_stored(4, of_magnitudes(call).at(0).abs()); }

constexpr Row kRows[] = {
    row<cross_entropy>("binary_cross_entropy"),
    row<cross_entropy_gradient>("binary_cross_entropy_backward"),
    row<huber>("huber_loss"),
    row<huber_gradient>("huber_loss_backward"),
    row<square>("mse_loss"),
    row<square_gradient>("mse_loss_backward"),
    row<picked_gradient>("nll_loss_backward"),
    {"nll_loss_forward", {ErrorBound::Kind::kRounded, picked}},
    row<smooth_distance>("smooth_l1_loss"),
    row<smooth_distance_gradient>("smooth_l1_loss_backward"),
};

}  // namespace

std::span<const Row> losses() { return kRows; }

}  // namespace lockstep::bounds

// RMSNorm: y = x r w with r = 1 / sqrt(mean(x^2) + epsilon) over the last dimension, of d elements.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "consistency/bounds/families.h"

namespace lockstep::bounds {
namespace {

double row_length(const ExactCall& call) { return static_cast<double>(call.tensor("x").size(-1)); }

/// The mean has d + 2 roundings of positive numbers, of which the root keeps half.
std::vector<at::Tensor> norm(const ExactCall& call) {
  const double roundings = row_length(call) / 2 + 6;
  return {call.rounded(roundings + 2, call.exact[0].abs()), call.rounded(roundings, call.exact[1].abs())};
}

/// r (g w - x r^2 mean(g w x)).
at::Tensor of_input(const ExactCall& call) {
  const auto x = call.magnitude("x"), r = call.magnitude("reciprocal").unsqueeze(-1);
  const auto weighted = call.magnitude("gradient") * call.magnitude("weight");
  const auto projected = x * r.square() * (weighted * x).mean(-1, /*keepdim=*/true);
  return call.rounded(row_length(call) + 10, r * (weighted + projected));
}

at::Tensor products(const ExactCall& call) {
  return call.magnitude("gradient") * call.magnitude("x") * call.magnitude("reciprocal").unsqueeze(-1);
}

std::vector<at::Tensor> gradients(const ExactCall& call) {
  const auto all = products(call);
  const auto rows = all.dim() == 1 ? all.unsqueeze(0) : all.flatten(0, -2);
  return {of_input(call), call.rounded(static_cast<double>(rows.size(0)) + 4, rows.sum(0))};
}

/// Of each sample.
at::Tensor of_weight(const ExactCall& call) {
  const auto all = products(call);
  const auto rows = all.dim() == 2 ? all.unsqueeze(1) : all.flatten(1, -2);
  return call.rounded(static_cast<double>(rows.size(1)) + 4, rows.sum(1));
}

constexpr Row kRows[] = {
    {"mesh::rms_norm", {ErrorBound::Kind::kRounded, norm}},
    {"mesh::rms_norm_backward", {ErrorBound::Kind::kRounded, gradients}},
    row<of_input>("mesh::rms_norm_input_gradient"),
    row<of_weight>("mesh::rms_norm_weight_gradient"),
};

}  // namespace

std::span<const Row> norms() { return kRows; }

}  // namespace lockstep::bounds

#include "trainer/optim/gradient_transforms.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <numeric>

#include "trainer/optim/on_every_rank.h"

namespace lockstep::trainer {
namespace {

constexpr double kLongestShare = 1e-2, kShortestUnit = 1e-3, kShortestGradient = 1e-6, kEpsilon = 1e-8;

constexpr const char* kReason = "ranger21";

/// Not in units that sums are cut between, as parameters that have fewer units than ranks are at rest.
bool is_cut_inside_units(const Layout& layout) {
  return std::ranges::any_of(layout.placements(), [](const Placement& placement) {
    return placement.is_shard() && placement.dim > 0 && placement.unit == 1;
  });
}

/// A vector, and units of a parameter with fewer of them than ranks, are cut where no tree of a sum is, and are short.
at::Tensor sum_of_units(const at::Tensor& x) {
  if (x.dim() < 2) return at::sum(on_every_rank(x, kReason));
  if (is_sharded(x) && is_cut_inside_units(layout_of(x))) return sum_of_units(on_every_rank(x, kReason));
  std::vector<int64_t> dims(static_cast<size_t>(x.dim() - 1));
  std::iota(dims.begin(), dims.end(), 1);
  return at::sum(x, dims, /*keepdim=*/true);
}

/// Unit by unit, then the units: a mesh cuts each of the two sums by itself.
at::Tensor sum_of_all(const at::Tensor& x) { return at::sum(on_every_rank(sum_of_units(x), kReason)); }

}  // namespace

at::Tensor unit_norms(const at::Tensor& x) { return at::sqrt(sum_of_units(at::mul(x, x))); }

at::Tensor clipped_by_units(const at::Tensor& gradient, const at::Tensor& parameter) {
  const auto longest = at::mul(at::clamp_min(unit_norms(parameter), kShortestUnit), kLongestShare);
  const auto norms = unit_norms(gradient);
  const auto clipped = at::mul(gradient, at::div(longest, at::clamp_min(norms, kShortestGradient)));
  return at::where(at::gt(norms, longest), clipped, gradient);
}

at::Tensor centralised(const at::Tensor& gradient) {
  if (gradient.dim() < 2 || gradient.numel() == 0) return gradient;
  const auto row = static_cast<double>(gradient.numel()) / static_cast<double>(gradient.size(0));
  return at::sub(gradient, at::div(sum_of_units(gradient), row));
}

at::Tensor normalised(const at::Tensor& gradient) {
  const auto count = static_cast<double>(gradient.numel());
  if (count <= 2) return gradient;
  const auto away = at::sub(gradient, at::div(sum_of_all(gradient), count));
  const auto deviation = at::sqrt(at::div(sum_of_all(at::mul(away, away)), count - 1));
  return at::div(gradient, at::add(deviation, kEpsilon));
}

}  // namespace lockstep::trainer

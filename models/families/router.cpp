#include "models/families/router.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/families/llama_layers.h"
#include "models/hooks.h"

namespace lockstep::models {
namespace {

using at::Tensor;

constexpr auto kLast = -1;

/// The numbers of the `count` largest along the last dimension, of equal ones the lower numbers first.
Tensor best(const Tensor& x, int64_t count) {
  return std::get<1>(at::sort(x, /*stable=*/true, kLast, /*descending=*/true)).narrow(kLast, 0, count);
}

/// For each of `experts` and each number whether it is that, [..., count].
Tensor is_each(const Tensor& experts, const Tensor& numbers) { return at::eq(experts.unsqueeze(kLast), numbers); }

}  // namespace

Router::Router(Module& owner, std::string name, const ExpertOptions& options, int64_t width, int64_t layer)
    : Module(owner, std::move(name)),
      options_(options),
      gate_(*this, "gate", {width, options.count, "router embed", truncated(depth_deviation(layer))}),
      numbers_(at::arange(options.count, c10::kLong)) {}

Tensor Router::scores(const Tensor& x) {
  const auto logits = gate_.unrounded(x);
  return options_.sigmoid_scores ? at::sigmoid(logits.to(c10::kFloat)) : at::softmax(logits, kLast, c10::kFloat);
}

Routing Router::forward(const Tensor& x, const Parameter* bias) {
  const auto open = scope();
  const auto all = scores(x);
  const auto experts = chosen(bias ? at::add(all.detach(), Tensor(*bias)) : all.detach());
  if (bias && trains()) balance(*bias, choice_counts(experts, constant(numbers_)), options_.balance_rate);
  auto given = weights(all, experts);
  if (options_.auxiliary_loss > 0 && trains())
    given = with_loss(given, at::mul(imbalance(all, experts, constant(numbers_)), options_.auxiliary_loss));
  return {options_.capacity_factor > 0 ? within_capacity(experts) : experts, given};
}

Tensor Router::chosen(const Tensor& scores) const {
  return best(options_.groups_per_token < options_.groups ? within_groups(scores) : scores, options_.per_token);
}

/// A group is as good as its two best scores together.
Tensor Router::within_groups(const Tensor& scores) const {
  const int64_t groups = options_.groups, size = options_.count / groups;
  const auto grouped = scores.view({scores.size(0), scores.size(1), groups, size});
  const auto sorted = std::get<0>(at::sort(grouped, /*stable=*/true, kLast, /*descending=*/true));
  const auto sums = at::sum(sorted.narrow(kLast, 0, std::min<int64_t>(size, 2)), kLast);
  const auto is_chosen =
      at::any(is_each(best(sums, options_.groups_per_token), constant(numbers_).narrow(0, 0, groups)), 2);
  const auto others = at::logical_not(is_chosen).unsqueeze(kLast);
  return at::masked_fill(grouped, others, -std::numeric_limits<double>::infinity()).view(scores.sizes());
}

Tensor Router::weights(const Tensor& scores, const Tensor& experts) const {
  // Not at::gather(), whose derivative is added into zeros that no mesh has cut: sums of one summand are exact.
  const auto others = at::logical_not(is_each(experts, constant(numbers_)));
  auto own = at::sum(at::masked_fill(scores.unsqueeze(2), others, 0), kLast);
  if (options_.normalized) own = at::div(own, at::add(at::sum(own, kLast, /*keepdim=*/true), 1e-20));
  return at::mul(own, options_.scale);
}

Tensor Router::within_capacity(const Tensor& experts) const {
  const auto even = static_cast<double>(experts.size(1) * options_.per_token) / static_cast<double>(options_.count);
  const auto capacity = static_cast<int64_t>(std::ceil(options_.capacity_factor * even));
  const auto whole = annotate(experts, "batch . .");
  return annotate(models::within_capacity(whole, constant(numbers_), capacity), "batch norm_length .");
}

Tensor choice_counts(const Tensor& experts, const Tensor& numbers) {
  return at::sum(is_each(experts, numbers), {0, 1, 2});
}

Tensor within_capacity(const Tensor& experts, const Tensor& numbers, int64_t capacity) {
  const auto by_choice = experts.transpose(1, 2);  // all first choices, then all second ones
  const auto in_order = by_choice.flatten(1, 2);
  const auto is_mine = is_each(in_order, numbers).to(c10::kLong);
  const auto place = at::sum(at::mul(at::cumsum(is_mine, 1), is_mine), kLast);  // among those of its expert, from 1
  const auto kept = at::masked_fill(in_order, at::gt(place, capacity), -1);
  return kept.view(by_choice.sizes()).transpose(1, 2);
}

Tensor imbalance(const Tensor& scores, const Tensor& experts, const Tensor& numbers) {
  const auto length = static_cast<double>(scores.size(1)), choices = static_cast<double>(experts.size(2));
  const auto count = static_cast<double>(scores.size(2));
  const auto chose = at::sum(is_each(experts, numbers), {1, 2}).to(c10::kFloat);
  const auto shares = at::div(scores, at::sum(scores, kLast, /*keepdim=*/true));
  const auto mean_share = at::div(at::sum(shares, 1), length);
  return at::sum(at::mul(at::mul(chose, count / (choices * length)), mean_share), kLast);
}

}  // namespace lockstep::models

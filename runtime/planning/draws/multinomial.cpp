#include "runtime/planning/draws/multinomial.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/planning/draws/drawn.h"

namespace lockstep::draws {
namespace {

using at::Tensor;

/// LibTorch's own limit.
constexpr int64_t kMostCategories = int64_t{1} << 24;

void check_weights(const Tensor& weights) {
  const auto valid = at::logical_and(at::ge(weights, 0), at::isfinite(weights)).all();
  if (!valid.item<bool>()) fail<BadInput>("multinomial: a weight is negative, infinite or NaN");
  if (!at::gt(weights.sum(-1), 0).all().item<bool>()) fail<BadInput>("multinomial: the weights of a row add up to 0");
}

/// The first category whose cumulative sum is above a random part of the total: one of weight 0 never is.
Tensor with_replacement(const LocalCall& call, const Tensor& weights) {
  const auto sums = at::cumsum(weights, -1), total = sums.narrow(-1, weights.size(-1) - 1, 1);
  const auto part = at::mul(drawn(call, c10::kDouble, rng::uniform()), total);
  const auto below_total = at::nextafter(total, at::zeros_like(total));  // a product may round up to the total
  return at::searchsorted(sums, at::minimum(part, below_total).contiguous(), /*out_int32=*/false, /*right=*/true);
}

Tensor without_replacement(const LocalCall& call, const Tensor& weights, int64_t count) {
  const auto waits = at::neg(logarithm(drawn_open(call, *call.plan.wanted[0])));
  const auto order = std::get<1>(at::sort(at::div(weights, waits), /*stable=*/true, -1, /*descending=*/true));
  return order.narrow(-1, 0, count).contiguous();
}

}  // namespace

void multinomial(const LocalCall& call, torch::jit::Stack& stack) {
  const auto weights = call.tensor(stack, "self").to(c10::kDouble).contiguous();
  const int64_t count = call.argument(stack, "num_samples").toInt();
  check_weights(weights);
  stack = {call.argument(stack, "replacement").toBool() ? with_replacement(call, weights)
                                                        : without_replacement(call, weights, count)};
}

std::vector<ResultShape> multinomial_shape(const Call& call) {
  auto sizes = call.operand_sizes[0];
  const int64_t count = call.argument("num_samples").toInt();
  if (!c10::isFloatingType(call.operand_dtypes[0]))
    fail<BadInput>("multinomial: weights are real numbers, not {}", c10::toString(call.operand_dtypes[0]));
  if (sizes.empty() || sizes.size() > 2)
    fail<BadInput>("multinomial: weights of {} dimensions, expected 1 or 2", sizes.size());
  const int64_t categories = sizes.back();
  if (count <= 0) fail<BadInput>("multinomial: {} samples", count);
  if (categories == 0 || categories > kMostCategories) fail<BadInput>("multinomial: {} categories", categories);
  if (count > categories && !call.argument("replacement").toBool())
    fail<BadInput>("multinomial: {} samples of {} categories without replacement", count, categories);
  sizes.back() = count;
  return {{sizes, {}, c10::kLong}};
}

}  // namespace lockstep::draws

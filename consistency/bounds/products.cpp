// Products of many factors, alone and where a scatter makes them or sums.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

#include "consistency/bounds/families.h"
#include "consistency/bounds/same_op.h"
#include "runtime/planning/plan.h"

namespace lockstep::bounds {
namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// Factors in any order: part of a product is at most `largest`, the product of those above 1, and where it is too
/// small for a normal number, what is lost is multiplied by no more than that. 16-bit factors are multiplied in 16
/// bits.
at::Tensor product(const ExactCall& call, double factors, const at::Tensor& magnitude, const at::Tensor& largest) {
  const bool is_half = call.stored_unit > 0 && call.stored_unit < 0x1p-10;
  const double smallest = is_half ? 0x1p-14 : 0x1p-126;
  const auto allowed = call.rounded_as_stored(factors + 1, magnitude) + factors * smallest * largest;
  return at::where(largest < (is_half ? 0x1p14 : 0x1p120), allowed, at::full({}, kNoBound, allowed.options()));
}

at::Tensor magnitude_of(const at::Tensor& x) { return x.abs(); }
at::Tensor above_one(const at::Tensor& x) { return x.abs().clamp_min(1); }

double length_along(const ExactCall& call) {
  const auto self = call.tensor("self");
  if (!has_argument(call.schema, "dim")) return static_cast<double>(self.numel());
  return self.dim() == 0 ? 1 : static_cast<double>(self.size(call.argument("dim").toInt()));
}

at::Tensor product_along(const ExactCall& call) {
  return product(call, length_along(call), of_each(call, magnitude_of), of_each(call, above_one));
}

double index_length(const ExactCall& call) {
  const auto index = call.tensor("index");
  return index.dim() == 0 ? 1 : static_cast<double>(index.size(call.argument("dim").toInt()));
}

/// An element of the result is made of its own and at most as many others as there are indices in a row.
at::Tensor scattered(const ExactCall& call) {
  const auto reduction = call.argument("reduce").toStringRef();
  if (reduction == "amax" || reduction == "amin") return at::zeros_like(call.exact[0]);
  const double others = index_length(call) + 1;
  if (reduction == "prod" || reduction == "multiply")
    return product(call, others, of_each(call, magnitude_of), of_each(call, above_one));
  return call.rounded_as_stored(others + 3, of_magnitudes(call).at(0));
}

constexpr Row kRows[] = {
    row<product_along>("cumprod"),        row<scattered>("index_reduce"),   row<product_along>("prod"),
    row<product_along>("prod.dim_int"),   row<scattered>("scatter.reduce"), row<scattered>("scatter.value_reduce"),
    row<scattered>("scatter_reduce.two"),
};

}  // namespace

std::span<const Row> products() { return kRows; }

}  // namespace lockstep::bounds

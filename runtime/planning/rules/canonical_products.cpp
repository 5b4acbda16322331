// Contractions by Lockstep's own products.
#include "runtime/kernels/tensors/canonical_products.h"

#include <ATen/Functions.h>

#include "runtime/kernels/tensors/canonical_sums.h"
#include "runtime/planning/ordered_sums.h"
#include "runtime/planning/rules/canonical_calls.h"

namespace lockstep::rules {
namespace {

using at::Tensor;
using kernels::ContractedRange;

/// The dimension `dim` of operand `slot` on this rank, in units of `unit` elements; all where the result is no sum that
/// stays open.
ContractedRange range_of(const LocalCall& call, size_t slot, int64_t dim, int64_t unit = 1) {
  if (!call.plan.results[0]->layout.ordered_sum()) return {};
  const auto& spec = *call.plan.wanted[slot];
  const auto size = spec.sizes[static_cast<size_t>(dim)];
  return {spec.cut(call.index, static_cast<int>(dim)).start / unit, (size + unit - 1) / unit};
}

/// The same of a product, whose upper levels may be rounded.
ContractedRange rounded_range_of(const LocalCall& call, size_t slot) {
  auto range = range_of(call, slot, call.plan.wanted[slot]->dim_count() - 1);
  const auto& result = *call.plan.results[0];
  range.rounded_levels = rounded_levels(result.layout.mesh().world(), result.dtype);
  return range;
}

/// left [..., m, k], right [..., k, n] of operands `slot` and slot + 1; vectors have no m or n.
Tensor multiply(const LocalCall& call, const Tensor& left, const Tensor& right, size_t slot = 0) {
  const bool row = left.dim() == 1, column = right.dim() == 1;
  const auto range = rounded_range_of(call, slot);
  auto product = kernels::product(row ? left.unsqueeze(0) : left, column ? right.unsqueeze(1) : right, range);
  if (row) product = product.squeeze(-2);
  if (column) product = product.squeeze(-1);
  return product;
}

void local_product(const LocalCall& call, torch::jit::Stack& stack) {
  stack = {multiply(call, stack[0].toTensor(), stack[1].toTensor())};
}

/// A bias is no part of the sum: a product with one is not cut (native_kernels.cpp adds linear's afterwards).
void local_addmm(const LocalCall& call, torch::jit::Stack& stack) {
  const auto bias = stack[0].toTensor();
  const auto product = multiply(call, stack[1].toTensor(), stack[2].toTensor(), 1);
  const auto sum = at::add(at::mul(bias, call.argument(stack, "beta").toScalar()),
                           at::mul(product, call.argument(stack, "alpha").toScalar()));
  stack = {call.plan.written >= 0 ? bias.copy_(sum) : sum};
}

void local_linear(const LocalCall& call, torch::jit::Stack& stack) {
  stack = {kernels::linear(stack[0].toTensor(), stack[1].toTensor(), std::nullopt, rounded_range_of(call, 0))};
}

/// What a rank without samples adds to a gradient.
Tensor no_nodes(const Tensor& gradient, const Tensor& input) {
  const auto dtype = gradient.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
  return at::empty({0, gradient.size(-1), input.size(-1)}, gradient.options().dtype(dtype));
}

/// Samples first; rows that are no batch are the elements of one sum.
void local_weight_gradient(const LocalCall& call, torch::jit::Stack& stack) {
  auto gradient = stack[0].toTensor(), input = stack[1].toTensor();
  const auto& spec = *call.plan.wanted[0];
  const bool is_vector = gradient.dim() == 1;
  if (is_vector) return (void)(stack = {at::outer(gradient, input)});
  const auto tree = *call.plan.batch;
  const bool is_batch = spec.sizes.size() > 2 || tree.leaf != SumTree::over_elements(spec.sizes[0]).leaf;
  const auto range = range_of(call, 0, 0, is_batch ? tree.leaf : 1);
  if (is_batch && tree.leaf > 1) {
    const auto between = gradient.sizes().slice(1, gradient.sizes().size() - 2);
    const int64_t samples = gradient.size(0) / tree.leaf, rows = tree.leaf * c10::multiply_integers(between);
    gradient = gradient.reshape({samples, rows, gradient.size(-1)});
    input = input.reshape({samples, rows, input.size(-1)});
  }
  if (is_batch && gradient.size(0) == 0 && range.total > 0) return (void)(stack = {no_nodes(gradient, input)});
  stack = {is_batch ? kernels::weight_gradient(gradient, input, range) : kernels::product(gradient.t(), input, range)};
}

constexpr CanonicalRule kForms[] = {
    {"addmm", local_addmm, Rule::kNoReduce},
    {"bmm", local_product, Rule::kRounds},
    {"linear", local_linear, Rule::kRounds},
    {"matmul", local_product, Rule::kRounds},
    {"mesh::weight_gradient", local_weight_gradient, Rule::kSamples},
    {"mm", local_product, Rule::kRounds},
};

}  // namespace

std::span<const CanonicalRule> canonical_products() { return kForms; }

}  // namespace lockstep::rules

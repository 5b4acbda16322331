// Contractions by Lockstep's own products.
#include <ATen/Functions.h>

#include "runtime/kernels/tensors/canonical_products.h"
#include "runtime/planning/canonical_local.h"
#include "runtime/planning/ordered_sums.h"
#include "runtime/planning/rules/canonical/canonical_forms.h"
#include "runtime/planning/rules/canonical/leave_result.h"

namespace lockstep::rules {
namespace {

using at::Tensor;
using kernels::ContractedRange;

/// The last dimension of operand `slot` on this rank, as a product sums it: its upper levels may be rounded.
ContractedRange rounded_range_of(const LocalCall& call, size_t slot) {
  auto range = contracted_here(call, slot, call.plan.wanted[slot]->dim_count() - 1);
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

/// A bias is no part of the sum: a product with one is not cut (native_kernels.cpp adds linear's afterwards). With a
/// factor of 0 it is not read, as in LibTorch: it may be memory that nobody wrote to.
void local_product_and_bias(const LocalCall& call, torch::jit::Stack& stack) {
  const auto bias = call.tensor(stack, "self");
  const auto product = multiply(call, stack[1].toTensor(), stack[2].toTensor(), 1);
  const auto beta = call.argument(stack, "beta").toScalar();
  const auto scaled = at::mul(product, call.argument(stack, "alpha").toScalar());
  const auto summand = beta.equal(0) ? at::zeros({}, bias.options()) : at::mul(bias, beta);
  const auto sum = at::add(summand, scaled);
  leave_result(call, stack, bias, sum);
}

void local_linear(const LocalCall& call, torch::jit::Stack& stack) {
  stack = {kernels::linear(call.tensor(stack, "input"), call.tensor(stack, "weight"), std::nullopt,
                           rounded_range_of(call, 0))};
}

constexpr CanonicalRule kForms[] = {
    {"addmm", local_product_and_bias, Rule::kNoReduce},
    {"addmv", local_product_and_bias, Rule::kNoReduce},
    {"baddbmm", local_product_and_bias, Rule::kNoReduce},
    {"bmm", local_product, Rule::kRounds},
    {"dot", local_product, Rule::kRounds},
    {"linear", local_linear, Rule::kRounds},
    {"matmul", local_product, Rule::kRounds},
    {"mm", local_product, Rule::kRounds},
    {"mv", local_product, Rule::kRounds},
};

}  // namespace

std::span<const CanonicalRule> canonical_products() { return kForms; }

}  // namespace lockstep::rules

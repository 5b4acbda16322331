#include "runtime/local_calls/products_in_parts.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/plain/tensor_bytes.h"
#include "runtime/planning/rule.h"
#include "runtime/redistribution/collective_parts.h"

namespace lockstep {
namespace {

using at::Tensor;

/// The call of the only local rank with `rows` in place of operand 0.
Tensor product_of(LocalCalls& calls, const Tensor& rows) {
  torch::jit::Stack local;
  calls.fill(0, local, &rows);
  calls.call(0, local);
  return local.at(0).toTensor().to(storage(*calls.plan.results[0]));
}

bool has_same_bits(const Tensor& a, const Tensor& b) {
  const auto one = a.contiguous(), other = b.contiguous();
  return one.sizes() == other.sizes() && one.scalar_type() == other.scalar_type() &&
         std::ranges::equal(bytes_of(one), bytes_of(other));
}

/// Where a product takes other ways for other numbers of rows, they have to give the same bits.
void compare(const LocalCalls& calls, const Tensor& in_parts, const Tensor& whole) {
  if (has_same_bits(in_parts, whole)) return;
  fail<InternalError>("{}: the rows of a product of {}, computed apart, are not those of the whole product",
                      calls.plan.rule->op, calls.plan.wanted[0]->text());
}

bool is_to_be_compared(const LocalCalls& calls, bool scattered, int dim) {
  return calls.world.canonical() && calls.world.part<Decomposition>().compares(calls.plan, scattered, dim);
}

/// Whether the rows of the result are products of the rows of operand 0: x W^T, or x W with a W of two dimensions.
bool has_rows_apart(const Plan& plan) {
  if (!plan.rule || plan.results.size() != 1 || plan.written >= 0 || plan.slots[0].element >= 0) return false;
  const std::string_view op = plan.rule->op;
  const bool is_matrix = plan.wanted.size() > 1 && plan.wanted[1] && plan.wanted[1]->dim_count() == 2;
  return (op == "linear" || (op == "matmul" && is_matrix)) && plan.wanted[0] && plan.wanted[0]->dim_count() > 1;
}

bool can_be_in_parts(const LocalCalls& calls) {
  const auto& plan = calls.plan;
  return plan.checked && !plan.reorders && has_rows_apart(plan) && calls.operands[0] &&
         plan.results[0]->layout.mesh().local_count() == 1;
}

/// x x^T reads all of x at once.
bool is_both_factors(const ShardSet& set, const LocalCalls& calls) {
  return std::any_of(calls.operands.begin() + 1, calls.operands.end(),
                     [&](const auto& operand) { return operand.get() == &set; });
}

/// The call, kept: with a plan and arguments of its own, and the factors as they are, whatever is freed meanwhile.
struct KeptCall {
  explicit KeptCall(const LocalCalls& other)
      : plan(other.plan),
        arguments(other.arguments.begin(), other.arguments.end()),
        calls{other.op, plan, other.world, other.context, arguments} {
    for (const auto& operand : other.operands) {
      calls.operands.push_back(operand ? std::make_shared<ShardSet>(operand->local_tensors(), operand->is_partial())
                                       : nullptr);
      if (operand) factors.push_back(operand->local_tensors()[0]);
    }
  }
  KeptCall(const KeptCall&) = delete;
  KeptCall& operator=(const KeptCall&) = delete;

  const Tensor& input() const { return calls.operands[0]->local_tensors()[0]; }

  Plan plan;
  std::vector<c10::IValue> arguments;
  LocalCalls calls;
  std::vector<Tensor> factors;
};

}  // namespace

Tensor product_of_arriving_rows(LocalCalls& calls) {
  if (!can_be_in_parts(calls)) return {};
  auto& decomposition = calls.world.part<Decomposition>();
  const auto arriving = decomposition.arriving(*calls.operands[0]);
  if (!arriving || is_both_factors(*calls.operands[0], calls)) return {};
  decomposition.count_gather();
  std::vector<Tensor> parts(arriving->members());
  for (size_t n = 0; n < parts.size(); ++n) {
    const size_t member = (arriving->own() + n) % parts.size();
    parts[member] = product_of(calls, arriving->piece(member));
  }
  auto result = at::cat(parts, shard_dim(*calls.plan.results[0], arriving->dim()));
  const auto& whole = calls.operands[0]->local_tensors()[0];
  if (is_to_be_compared(calls, /*scattered=*/false, arriving->dim())) compare(calls, result, product_of(calls, whole));
  return result;
}

std::shared_ptr<ShardSet> product_put_off(const LocalCalls& calls) {
  auto& decomposition = calls.world.part<Decomposition>();
  if (!can_be_in_parts(calls) || !decomposition.has_sums_of(*calls.plan.results[0])) return nullptr;
  const auto& result = *calls.plan.results[0];
  const auto kept = std::make_shared<KeptCall>(calls);
  const auto compute = [kept](int dim, const Range& rows) {
    return product_of(kept->calls, kept->input().narrow(dim, rows.start, rows.length));
  };
  const auto whole = [kept] { return Shards{product_of(kept->calls, kept->input())}; };
  const auto check = [kept, whole](int dim, const ProductRows& scattered) {
    if (is_to_be_compared(kept->calls, /*scattered=*/true, dim)) compare(kept->calls, scattered.whole()[0], whole()[0]);
  };
  ProductRows rows(static_cast<int>(result.sizes.size()), result.expected_sizes(0), storage(result), compute, check);
  return decomposition.put_off(std::move(rows), whole, kept->factors);
}

}  // namespace lockstep

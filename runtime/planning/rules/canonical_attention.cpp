// Attention by Lockstep's own kernels. A cut of the query sequence falls between leaves: the gradients of keys and
// values are then nodes of the tree over all query rows.
#include "runtime/kernels/tensors/canonical_attention.h"

#include "runtime/planning/rules/canonical_calls.h"

namespace lockstep::rules {
namespace {

using at::Tensor;

Range query_rows(const LocalCall& call, size_t query) { return call.plan.wanted[query]->cut(call.index, 2); }

void local_attention(const LocalCall& call, torch::jit::Stack& stack) {
  auto [output, log_sum] =
      kernels::canonical_attention(stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor(), call.argument(stack, "causal").toBool(),
                                   call.argument(stack, "scale").toDouble(), call.argument(stack, "first_row").toInt() + query_rows(call, 0).start);
  stack = {std::move(output), std::move(log_sum)};
}

void local_attention_backward(const LocalCall& call, torch::jit::Stack& stack) {
  std::vector<Tensor> in;
  for (size_t i = 0; i < 6; ++i) in.push_back(stack[i].toTensor());
  const auto rows = query_rows(call, 1);
  kernels::ContractedRange range;
  if (call.plan.results[1]->layout.ordered_sum()) range = {rows.start, call.plan.wanted[1]->sizes[2]};
  auto [dq, dk, dv] = kernels::canonical_attention_backward(in[0], in[1], in[2], in[3], in[4], in[5], call.argument(stack, "causal").toBool(),
  call.argument(stack, "scale").toDouble(), call.argument(stack, "first_row").toInt() + rows.start, range);
  stack = {dq, dk, dv};
}

constexpr CanonicalRule kForms[] = {
    {"mesh::attention", local_attention},
    {"mesh::attention_backward", local_attention_backward},
};

}  // namespace

std::span<const CanonicalRule> canonical_attention() { return kForms; }

}  // namespace lockstep::rules

// Table look-ups. A rank that holds a range of the vocabulary gives zeros for tokens outside of it, so that the ranks'
// results sum to the row.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/deferred/range_checks.h"
#include "runtime/planning/canonical_local.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::rules {
namespace {

std::vector<ResultShape> embedding_shape(const Call& call) {
  auto sizes = call.sizes_of("indices");
  sizes.push_back(call.sizes_of("weight")[1]);
  return {{sizes, {}, call.dtype_of("weight")}};
}

std::vector<ResultShape> gradient_shape(const Call& call) {
  const auto &gradient = call.sizes_of("grad_output"), &indices = call.sizes_of("indices");
  auto tokens = gradient;
  if (!tokens.empty()) tokens.pop_back();
  if (gradient.empty() || tokens != indices)
    fail<BadInput>("{}: a gradient {} does not fit tokens {}; expected one dimension more, the last", call.op,
                   c10::str(c10::IntArrayRef(gradient)), c10::str(c10::IntArrayRef(indices)));
  return {{{call.argument("num_weights").toInt(), gradient.back()}, {}, call.dtype_of("grad_output")}};
}

struct LocalRows {
  at::Tensor index;    ///< clamped into the shard
  at::Tensor outside;  ///< true where the token lies elsewhere
};

LocalRows local_rows(const at::Tensor& tokens, const Range& held) {
  auto index = tokens - held.start;
  auto outside = (index < 0).logical_or_(index >= held.length);
  return {index.masked_fill_(outside, 0), outside};
}

void check_tokens(const LocalCall& call, const at::Tensor& tokens, int64_t vocabulary) {
  call.plan.results[0]->layout.mesh().world().part<RangeChecks>().require(
      tokens, vocabulary, [vocabulary](int64_t wrong) {
        return fmt::format("token {} is outside of the vocabulary of {} entries", wrong, vocabulary);
      });
}

/// A GPU's are not known to be within the table yet, see RangeChecks.
at::Tensor within(const at::Tensor& tokens, int64_t rows) {
  return tokens.is_cuda() && rows > 0 ? tokens.clamp(0, rows - 1) : tokens;
}

void local_embedding(const LocalCall& call, torch::jit::Stack& stack) {
  const auto table = call.tensor(stack, "weight"), tokens = call.tensor(stack, "indices");
  const auto held = call.plan.wanted[0]->cut(call.index, 0);
  const int64_t vocabulary = call.plan.wanted[0]->sizes[0];
  check_tokens(call, tokens, vocabulary);
  if (held.length == vocabulary) {
    call.set_argument(stack, "indices", within(tokens, vocabulary));
    return call.op.callBoxed(stack);
  }
  if (held.length == 0) {
    stack = {at::zeros(call.plan.results[0]->local_sizes[call.index], table.options())};
    return;
  }
  const auto rows = local_rows(tokens, held);
  stack = {at::embedding(table, rows.index).masked_fill_(rows.outside.unsqueeze(-1), 0)};
}

/// Tokens of other ranks' rows carry no gradient here: they are the padding index of the local call.
void local_embedding_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const auto held = call.plan.results[0]->cut(call.index, 0);
  auto gradient = call.tensor(stack, "grad_output");
  const auto tokens = call.tensor(stack, "indices");
  const auto padding = call.argument(stack, "padding_idx").toInt();
  if (held.length == call.plan.results[0]->sizes[0]) {
    call.set_argument(stack, "indices", within(tokens, held.length));
    return call.op.callBoxed(stack);
  }
  if (held.length == 0) {
    stack = {at::zeros(call.plan.results[0]->local_sizes[call.index], gradient.options())};
    return;
  }
  auto rows = local_rows(tokens, held);
  auto dropped = padding >= 0 ? rows.outside.logical_or(tokens == padding) : rows.outside;
  gradient = gradient.masked_fill(dropped.unsqueeze(-1), 0);
  stack = {at::embedding_dense_backward(gradient, rows.index, held.length, -1,
                                        call.argument(stack, "scale_grad_by_freq").toBool())};
}

/// scale_grad_by_freq divides by how often a token occurs anywhere: nobody may have a part of the tokens alone.
OpSharding gradient_sharding(const Call& call) {
  auto sharding = parse_op_sharding("...d,...->vd", call.operand_sizes, call.result_sizes());
  if (!call.argument("scale_grad_by_freq").toBool()) return sharding;
  for (size_t d = 0; d + 1 < sharding.operands[0].size(); ++d) sharding.operands[0][d] = {};
  sharding.operands[1].assign(sharding.operands[1].size(), OpShardingDim{});
  sharding.results[0][0] = {};
  return sharding;
}

constexpr Rule kRows[] = {
    {"embedding", "embedding", "vd,...->...d", "e-", Rule::kPlain, nullptr, embedding_shape, local_embedding},
    {"embedding_dense_backward", "embedding", "...d,...->vd", "e-", Rule::kPlain, gradient_sharding, gradient_shape,
     local_embedding_backward},
};

}  // namespace

std::span<const CanonicalRule> canonical_embedding() {
  static constexpr CanonicalRule kForms[] = {{"embedding", local_disjoint<local_embedding>, Rule::kDisjoint}};
  return kForms;
}

std::span<const Rule> embedding() { return kRows; }

}  // namespace lockstep::rules

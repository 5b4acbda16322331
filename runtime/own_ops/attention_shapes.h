#pragma once
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/own_ops/families.h"
#include "runtime/planning/rule.h"

/// Sizes and labels of attention's operands: query [b, h*g, l, d], key [b, h, s, d], value [b, h, s, e].
namespace lockstep::own_ops {

/// Labels: 0 batch, 1 key-value head (queries have `group` heads for each), 2 query position.
inline OpShardingDims query_dims(int64_t group) { return {{0}, {1, group}, {2}, {}}; }
inline OpShardingDims key_dims() { return {{0}, {1}, {}, {}}; }
inline OpShardingDims rows_dims(int64_t group) { return {{0}, {1, group}, {2}}; }

/// Of each query row's place in its document.
inline OpShardingDims places_dims() { return {{0}, {2}}; }

/// Of what each query row draws.
inline OpShardingDims draws_dims(int64_t group) { return {{0}, {1, group}, {2}, {}}; }

/// Heads of the query for each of the key: what a cut may not divide. Without heads anything may.
inline int64_t group_of(const Call& call, size_t query, size_t key) {
  const int64_t keys = call.operand_sizes[key][1];
  return keys > 0 ? std::max<int64_t>(call.operand_sizes[query][1] / keys, 1) : 1;
}

/// query [b, h*g, l, d], key [b, h, s, d], value [b, h, s, e].
inline void check_heads(std::string_view op, c10::IntArrayRef query, c10::IntArrayRef key, c10::IntArrayRef value) {
  const bool same_batch = query[0] == key[0] && query[0] == value[0];
  const bool whole_groups = key[1] == 0 ? query[1] == 0 : query[1] % key[1] == 0;
  if (!same_batch || !whole_groups || key[1] != value[1] || key[2] != value[2] || query[3] != key[3])
    fail<BadInput>("{}: query {}, key {} and value {} do not fit: expected [b, h*g, l, d], [b, h, s, d], [b, h, s, e]",
                   op, c10::str(query), c10::str(key), c10::str(value));
}

/// Operands `first` and on: query, key, value.
inline void check_heads(const Call& call, size_t first) {
  for (size_t i = first; i < first + 3; ++i)
    if (call.dims(i) != 4)
      fail<BadInput>("{}: query, key and value should be [batch, heads, length, size]; operand {} has {} dimensions",
                     call.op, i, call.dims(i));
  check_heads(call.op, call.operand_sizes[first], call.operand_sizes[first + 1], call.operand_sizes[first + 2]);
  const auto& dtypes = call.operand_dtypes;
  if (dtypes[first] != dtypes[first + 1] || dtypes[first] != dtypes[first + 2])
    fail<BadInput>("{}: query, key and value have dtypes {}, {} and {}; expected one", call.op,
                   c10::toString(dtypes[first]), c10::toString(dtypes[first + 1]), c10::toString(dtypes[first + 2]));
}

/// Sizes of the output and of each row's log-sum-exp. Operands `first` and on: query, key, value.
inline std::pair<std::vector<int64_t>, std::vector<int64_t>> output_sizes(const Call& call, size_t first) {
  auto out = call.operand_sizes[first], rows = out;
  out[3] = call.operand_sizes[first + 2][3];
  rows.pop_back();
  return {out, rows};
}

inline void expect_places(const Call& call, size_t operand, const std::vector<int64_t>& query) {
  const c10::IntArrayRef given = call.operand_sizes[operand];
  if (call.operand_dtypes[operand] != c10::kLong || given != c10::IntArrayRef({query[0], query[2]}))
    fail<BadInput>("{}: places should be Long [{}, {}], one of each query row; they are {} {}", call.op, query[0],
                   query[2], c10::toString(call.operand_dtypes[operand]), c10::str(given));
}

/// Draws of each query row behind the `operands` before them, if the call has some.
inline bool has_draws(const Call& call, size_t operands) { return call.operand_sizes.size() > operands; }

inline void expect_draws(const Call& call, size_t operand, const std::vector<int64_t>& query) {
  if (!has_draws(call, operand)) return;
  const c10::IntArrayRef given = call.operand_sizes[operand];
  const std::vector<int64_t> expected{query[0], query[1], query[2], kernels::kAttentionDraws};
  if (call.operand_dtypes[operand] != c10::kLong || given != c10::IntArrayRef(expected))
    fail<BadInput>("{}: draws should be Long {}, those of each query row; they are {} {}", call.op,
                   c10::str(c10::IntArrayRef(expected)), c10::toString(call.operand_dtypes[operand]), c10::str(given));
}

inline Range query_rows(const LocalCall& call, size_t query) { return call.plan.wanted[query]->cut(call.index, 2); }

/// Causal masks depend on the position of the first query row.
inline int64_t first_row(const LocalCall& call, const torch::jit::Stack& stack, size_t query) {
  return call.argument(stack, "first_row").toInt() + query_rows(call, query).start;
}

template <size_t kQuery>
void from_first_row(const LocalCall& call, torch::jit::Stack& stack) {
  call.set_argument(stack, "first_row", first_row(call, stack, kQuery));
  call.op.callBoxed(stack);
}

inline void expect_sizes(const Call& call, size_t operand, const std::vector<int64_t>& expected) {
  const c10::IntArrayRef given = call.operand_sizes[operand];
  if (given != c10::IntArrayRef(expected))
    fail<BadInput>("{}: operand {} has sizes {}, its query and value have an output of {}", call.op, operand,
                   c10::str(given), c10::str(c10::IntArrayRef(expected)));
}

/// Attention taken whole: query, key, value -> output, each row's log-sum-exp.
inline OpSharding whole_sharding(const Call& call) {
  const int64_t group = group_of(call, 0, 1);
  OpSharding sharding;
  sharding.operands = {query_dims(group), key_dims(), key_dims()};
  sharding.results = {query_dims(group), rows_dims(group)};
  return sharding;
}

inline std::vector<ResultShape> whole_shapes(const Call& call) {
  check_heads(call, 0);
  const auto [out, rows] = output_sizes(call, 0);
  const auto dtype = call.operand_dtypes[0];
  return {heads_inside(out, dtype), heads_inside(rows, dtype == c10::kDouble ? c10::kDouble : c10::kFloat)};
}

/// Operands: gradient, query, key, value, output, log-sum-exp.
inline OpSharding whole_backward_sharding(const Call& call) {
  const int64_t group = group_of(call, 1, 2);
  OpSharding sharding;
  sharding.operands = {query_dims(group), query_dims(group), key_dims(),
                       key_dims(),        query_dims(group), rows_dims(group)};
  sharding.results = {query_dims(group), key_dims(), key_dims()};
  return sharding;
}

inline std::vector<ResultShape> whole_backward_shapes(const Call& call) {
  check_heads(call, 1);
  const auto [out, rows] = output_sizes(call, 1);
  expect_sizes(call, 0, out), expect_sizes(call, 4, out), expect_sizes(call, 5, rows);
  std::vector<ResultShape> shapes;
  for (size_t i = 1; i <= 3; ++i) shapes.push_back(heads_inside(call.operand_sizes[i], call.operand_dtypes[i]));
  return shapes;
}

/// What the query rows of a call in documents bring along.
inline kernels::AttentionRows attention_rows(const LocalCall& call, const torch::jit::Stack& stack) {
  const auto& draws = call.argument(stack, "draws");
  return {call.tensor(stack, "places"), draws.isNone() ? at::Tensor() : draws.toTensor(),
          call.argument(stack, "dropout").toDouble()};
}

/// Under canonical numerics.
inline void canonical_forward(const LocalCall& call, torch::jit::Stack& stack, bool causal,
                              const kernels::AttentionRows& rows = {}) {
  auto [output, log_sum] =
      kernels::canonical_attention(call.tensor(stack, "query"), call.tensor(stack, "key"), call.tensor(stack, "value"),
                                   causal, call.argument(stack, "scale").toDouble(), first_row(call, stack, 0), rows);
  stack = {std::move(output), std::move(log_sum)};
}

inline void canonical_backward(const LocalCall& call, torch::jit::Stack& stack, bool causal,
                               const kernels::AttentionRows& rows = {}) {
  std::vector<at::Tensor> in;
  for (const char* name : {"gradient", "query", "key", "value", "output", "log_sum"})
    in.push_back(call.tensor(stack, name));
  kernels::ContractedRange range;
  if (call.plan.results[1]->layout.ordered_sum()) range = {query_rows(call, 1).start, call.plan.wanted[1]->sizes[2]};
  auto [dq, dk, dv] = kernels::canonical_attention_backward(in[0], in[1], in[2], in[3], in[4], in[5], causal,
                                                            call.argument(stack, "scale").toDouble(),
                                                            first_row(call, stack, 1), range, rows);
  stack = {dq, dk, dv};
}

}  // namespace lockstep::own_ops

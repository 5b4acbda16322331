#pragma once
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "runtime/planning/rule.h"

/// Sizes and labels of attention's operands: query [b, h*g, l, d], key [b, h, s, d], value [b, h, s, e].
namespace lockstep::own_ops {

/// Labels: 0 batch, 1 key-value head (queries have `group` heads for each), 2 query position.
inline OpShardingDims query_dims(int64_t group) { return {{0}, {1, group}, {2}, {}}; }
inline OpShardingDims key_dims() { return {{0}, {1}, {}, {}}; }
inline OpShardingDims rows_dims(int64_t group) { return {{0}, {1, group}, {2}}; }

/// Of each query row's place in its document.
inline OpShardingDims places_dims() { return {{0}, {2}}; }

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

}  // namespace lockstep::own_ops

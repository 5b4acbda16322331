// Scaled dot-product attention, taken whole. Heads and batch are free; a cut of the query sequence needs whole keys and
// values, whose gradients are then Partial.
#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::rules {
namespace {

/// Labels: 0 batch, 1 key-value head (queries have `group` heads for each), 2 query position.
OpShardingDims query_dims(int64_t group) { return {{0}, {1, group}, {2}, {}}; }
OpShardingDims key_dims() { return {{0}, {1}, {}, {}}; }

int64_t group_of(const Call& call, size_t query, size_t key) {
  return call.operand_sizes[key][1] > 0 ? call.operand_sizes[query][1] / call.operand_sizes[key][1] : 1;
}

OpShardingDims rows_dims(int64_t group) { return {{0}, {1, group}, {2}}; }

OpSharding attention_form(const Call& call) {
  const int64_t group = group_of(call, 0, 1);
  OpSharding sharding;
  sharding.operands = {query_dims(group), key_dims(), key_dims()};
  sharding.results = {query_dims(group), rows_dims(group)};
  return sharding;
}

/// Operands: gradient, query, key, value, output, log-sum-exp.
OpSharding attention_backward_form(const Call& call) {
  const int64_t group = group_of(call, 1, 2);
  OpSharding sharding;
  sharding.operands = {query_dims(group), query_dims(group), key_dims(),
                       key_dims(),        query_dims(group), rows_dims(group)};
  sharding.results = {query_dims(group), key_dims(), key_dims()};
  return sharding;
}

/// [batch, heads, length, ...] with memory [batch, length, heads, ...], so that heads merge without a copy.
ResultShape heads_inside(std::vector<int64_t> sizes, c10::ScalarType dtype) {
  const int64_t inner = sizes.size() > 3 ? sizes[3] : 1;
  std::vector<int64_t> strides{sizes[1] * sizes[2] * inner, inner, sizes[1] * inner};
  if (sizes.size() > 3) strides.push_back(1);
  return {std::move(sizes), std::move(strides), dtype};
}

/// query [b, h*g, l, d], key [b, h, s, d], value [b, h, s, e], operands `first` and on.
void check_heads(const Call& call, size_t first) {
  for (size_t i = first; i < first + 3; ++i)
    if (call.dims(i) != 4)
      fail<BadInput>("{}: query, key and value should be [batch, heads, length, size]; operand {} has {} dimensions",
                     call.op, i, call.dims(i));
  const auto &query = call.operand_sizes[first], &key = call.operand_sizes[first + 1],
             &value = call.operand_sizes[first + 2];
  const bool same_batch = query[0] == key[0] && query[0] == value[0];
  const bool whole_groups = key[1] == 0 ? query[1] == 0 : query[1] % key[1] == 0;
  if (!same_batch || !whole_groups || key[1] != value[1] || key[2] != value[2] || query[3] != key[3])
    fail<BadInput>("{}: query {}, key {} and value {} do not fit: expected [b, h*g, l, d], [b, h, s, d], [b, h, s, e]",
                   call.op, c10::str(c10::IntArrayRef(query)), c10::str(c10::IntArrayRef(key)),
                   c10::str(c10::IntArrayRef(value)));
}

std::vector<ResultShape> attention_shapes(const Call& call) {
  check_heads(call, 0);
  auto out = call.operand_sizes[0], rows = call.operand_sizes[0];
  out[3] = call.operand_sizes[2][3];
  rows.pop_back();
  const auto dtype = call.operand_dtypes[0];
  return {heads_inside(out, dtype), heads_inside(rows, dtype == c10::kDouble ? c10::kDouble : c10::kFloat)};
}

std::vector<ResultShape> attention_backward_shapes(const Call& call) {
  check_heads(call, 1);
  std::vector<ResultShape> shapes;
  for (size_t i = 1; i <= 3; ++i) shapes.push_back(heads_inside(call.operand_sizes[i], call.operand_dtypes[i]));
  return shapes;
}

std::vector<ResultShape> rotated_shape(const Call& call) {
  if (call.operand_sizes[0][3] != 2 * call.operand_sizes[1][1])
    fail<BadInput>("{}: heads of size {} need tables of half as many columns, not {}", call.op,
                   call.operand_sizes[0][3], call.operand_sizes[1][1]);
  return {heads_inside(call.operand_sizes[0], call.operand_dtypes[0])};
}

/// Causal masks depend on the position of the first query row.
void local_attention(const LocalCall& call, torch::jit::Stack& stack) {
  const size_t query = call.plan.slots.size() == 3 ? 0 : 1;
  const int64_t first = call.argument(stack, "first_row").toInt();
  call.set_argument(stack, "first_row", first + call.plan.wanted[query]->cut(call.index, 2).start);
  call.op.callBoxed(stack);
}

constexpr Rule kRows[] = {
    {"mesh::attention", "attention", "b(h*g)ld,bhsd,bhse->b(h*g)le,b(h*g)l", "-", Rule::kNoReduce, attention_form,
     attention_shapes, local_attention},
    {"mesh::attention_backward", "attention", "...->b(h*g)ld,bhsd,bhse", "-", Rule::kPlain, attention_backward_form,
     attention_backward_shapes, local_attention},
    {"mesh::rotate_pairs", "attention", "bhlD,lP,lP->bhlD", "e--", Rule::kPlain, nullptr, rotated_shape},
};

}  // namespace

std::span<const Rule> attention() { return kRows; }

}  // namespace lockstep::rules

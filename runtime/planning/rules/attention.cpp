// Scaled dot-product attention, taken whole. Heads and batch are free; a cut of the query sequence needs whole keys and
// values, whose gradients are then Partial.
#include <ATen/Functions.h>

#include "runtime/rule_set.h"

namespace lockstep::rules {
namespace {

/// Labels: 0 batch, 1 key-value head (queries have `group` heads for each), 2 query position.
FormDims query_dims(int64_t group) { return {{0}, {1, group}, {2}, {}}; }
FormDims key_dims() { return {{0}, {1}, {}, {}}; }

int64_t group_of(const Call& call, size_t query, size_t key) {
  return call.operand_sizes[key][1] > 0 ? call.operand_sizes[query][1] / call.operand_sizes[key][1] : 1;
}

FormDims rows_dims(int64_t group) { return {{0}, {1, group}, {2}}; }

Form attention_form(const Call& call) {
  const int64_t group = group_of(call, 0, 1);
  Form form;
  form.operands = {query_dims(group), key_dims(), key_dims()};
  form.results = {query_dims(group), rows_dims(group)};
  return form;
}

/// Operands: gradient, query, key, value, output, log-sum-exp.
Form attention_backward_form(const Call& call) {
  const int64_t group = group_of(call, 1, 2);
  Form form;
  form.operands = {query_dims(group), query_dims(group), key_dims(), key_dims(), query_dims(group), rows_dims(group)};
  form.results = {query_dims(group), key_dims(), key_dims()};
  return form;
}

/// [batch, heads, length, ...] with memory [batch, length, heads, ...], so that heads merge without a copy.
ResultShape heads_inside(std::vector<int64_t> sizes, c10::ScalarType dtype) {
  const int64_t inner = sizes.size() > 3 ? sizes[3] : 1;
  std::vector<int64_t> strides{sizes[1] * sizes[2] * inner, inner, sizes[1] * inner};
  if (sizes.size() > 3) strides.push_back(1);
  return {std::move(sizes), std::move(strides), dtype};
}

std::vector<ResultShape> attention_shapes(const Call& call) {
  auto out = call.operand_sizes[0], rows = call.operand_sizes[0];
  out[3] = call.operand_sizes[2][3];
  rows.pop_back();
  const auto dtype = call.operand_dtypes[0];
  return {heads_inside(out, dtype), heads_inside(rows, dtype == c10::kDouble ? c10::kDouble : c10::kFloat)};
}

std::vector<ResultShape> attention_backward_shapes(const Call& call) {
  std::vector<ResultShape> shapes;
  for (size_t i = 1; i <= 3; ++i) shapes.push_back(heads_inside(call.operand_sizes[i], call.operand_dtypes[i]));
  return shapes;
}

std::vector<ResultShape> rotated_shape(const Call& call) {
  return {heads_inside(call.operand_sizes[0], call.operand_dtypes[0])};
}

/// The last argument is the position of the first query row; causal masks depend on it.
void local_attention(const LocalCall& call, torch::jit::Stack& stack) {
  const size_t query = call.plan.slots.size() == 3 ? 0 : 1;
  stack.back() = stack.back().toInt() + call.plan.wanted[query]->cut(call.index, 2).start;
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

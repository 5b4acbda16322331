// How attention is called, of whole samples and of documents packed in them, whole and block by block.
#include <ATen/Functions.h>
#include <rapidcheck.h>

#include <cmath>

#include "fuzz/cases/op_cases.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep::testing {
namespace {

using enum OpCase::Trait;

struct AttentionSizes {
  int64_t batch, heads, group, queries, keys, width, value_width;
  bool causal;
};

AttentionSizes draw_attention_sizes(Inputs& in) {
  AttentionSizes s{in.number(1, 3), in.number(1, 4), in.number(1, 3), in.length(6), 0, in.number(1, 4), 0, in.flag()};
  s.keys = s.causal || in.flag() ? s.queries : in.length(6);
  s.value_width = s.width;
  return s;
}

double scale_for(const AttentionSizes& s) { return 1 / std::sqrt(static_cast<double>(s.width)); }

Stack draw_query_key_value(Inputs& in, const AttentionSizes& s) {
  return {in.tensor({s.batch, s.heads * s.group, s.queries, s.width}), in.tensor({s.batch, s.heads, s.keys, s.width}),
          in.tensor({s.batch, s.heads, s.keys, s.value_width})};
}

Stack draw_attention(Inputs& in) {
  const auto s = draw_attention_sizes(in);
  auto stack = draw_query_key_value(in, s);
  for (const c10::IValue& value : {c10::IValue(s.causal), c10::IValue(scale_for(s)), c10::IValue(int64_t{0})})
    stack.push_back(value);
  return stack;
}

Stack draw_attention_backward(Inputs& in) {
  const auto s = draw_attention_sizes(in);
  const auto operands = draw_query_key_value(in, s);
  const auto query = operands[0].toTensor(), key = operands[1].toTensor(), value = operands[2].toTensor();
  const auto [output, log_sum] = mesh_ops::attention(query, key, value, s.causal, scale_for(s));
  return {in.tensor(output.sizes().vec()), query, key, value, output, log_sum, s.causal, scale_for(s), int64_t{0}};
}

/// Of each query row in its document.
at::Tensor draw_places(Inputs& in, const AttentionSizes& s) {
  std::vector<int64_t> places;
  for (int64_t batch = 0; batch < s.batch; ++batch)
    for (int64_t row = 0, place = in.number(0, 2); row < s.queries; ++row)
      places.push_back(in.number(0, 3) == 0 ? place = 0 : ++place);
  return at::tensor(places, at::kLong).view({s.batch, s.queries});
}

AttentionSizes draw_document_sizes(Inputs& in) {
  auto s = draw_attention_sizes(in);
  s.keys = s.queries;
  return s;
}

Stack draw_document_attention(Inputs& in) {
  const auto s = draw_document_sizes(in);
  auto stack = draw_query_key_value(in, s);
  for (const c10::IValue& value : {c10::IValue(draw_places(in, s)), c10::IValue(scale_for(s)), c10::IValue(int64_t{0})})
    stack.push_back(value);
  return stack;
}

Stack draw_document_attention_backward(Inputs& in) {
  const auto s = draw_document_sizes(in);
  const auto operands = draw_query_key_value(in, s);
  const auto query = operands[0].toTensor(), key = operands[1].toTensor(), value = operands[2].toTensor();
  const auto places = draw_places(in, s);
  const auto [output, log_sum] = mesh_ops::document_attention(query, key, value, places, scale_for(s));
  return {in.tensor(output.sizes().vec()), query, key, value, output, log_sum, places, scale_for(s), int64_t{0}};
}

/// What queries have summed of some keys, or of none.
std::tuple<at::Tensor, at::Tensor> draw_attention_state(Inputs& in, const AttentionSizes& s, const at::Tensor& query) {
  const auto none = [&](int64_t size) {
    return at::zeros({s.batch, s.heads * s.group, s.queries, size}, query.options());
  };
  if (in.flag()) return {none(s.value_width), none(mesh_ops::kAttentionWeights)};
  const auto key = in.tensor({s.batch, s.heads, 3, s.width}), value = in.tensor({s.batch, s.heads, 3, s.value_width});
  return mesh_ops::attention_over(query, key, value, none(s.value_width), none(mesh_ops::kAttentionWeights), s.causal,
                                  scale_for(s), 0);
}

Stack draw_attention_over(Inputs& in) {
  const auto s = draw_attention_sizes(in);
  auto stack = draw_query_key_value(in, s);
  const auto [sums, weights] = draw_attention_state(in, s, stack[0].toTensor());
  const Stack more{sums, weights, s.causal, scale_for(s), in.number(-3, 3)};
  stack.insert(stack.end(), more.begin(), more.end());
  return stack;
}

Stack draw_attention_result(Inputs& in) {
  const auto s = draw_attention_sizes(in);
  const auto query = in.tensor({s.batch, s.heads * s.group, s.queries, s.width});
  const auto [sums, weights] = draw_attention_state(in, s, query);
  return {sums, weights};
}

/// All query rows, or one leaf of two.
Stack draw_attention_over_backward(Inputs& in) {
  auto s = draw_attention_sizes(in);
  const bool is_half = in.flag();
  if (is_half) s.queries = 32;
  const auto operands = draw_query_key_value(in, s);
  const auto query = operands[0].toTensor(), key = operands[1].toTensor(), value = operands[2].toTensor();
  const auto [sums, weights] = draw_attention_state(in, s, query);
  const auto [output, log_sum] = mesh_ops::attention_result(sums, weights);
  const auto first = is_half ? 32 * in.number(0, 1) : 0;
  return {in.tensor(output.sizes().vec()),
          query,
          key,
          value,
          output,
          log_sum,
          in.tensor(query.sizes().vec()),
          s.causal,
          scale_for(s),
          in.number(-3, 3),
          first,
          is_half ? int64_t{64} : s.queries};
}

Stack draw_document_attention_over(Inputs& in) {
  auto s = draw_document_sizes(in);
  s.causal = true;
  auto stack = draw_query_key_value(in, s);
  const auto [sums, weights] = draw_attention_state(in, s, stack[0].toTensor());
  const Stack more{sums, weights, draw_places(in, s), scale_for(s), in.number(-3, 3)};
  stack.insert(stack.end(), more.begin(), more.end());
  return stack;
}

Stack draw_document_attention_over_backward(Inputs& in) {
  auto stack = draw_attention_over_backward(in);
  const auto query = stack[1].toTensor();
  AttentionSizes s{};
  s.batch = query.size(0), s.queries = query.size(2);
  stack[7] = draw_places(in, s);  // instead of `causal`
  return stack;
}

Stack draw_scaled_dot_product(Inputs& in) {
  const auto s = draw_attention_sizes(in);
  auto stack = draw_query_key_value(in, s);
  const Stack more{c10::IValue(), 0.0, s.causal, c10::IValue(), s.group > 1};
  stack.insert(stack.end(), more.begin(), more.end());
  return stack;
}

}  // namespace

std::vector<OpCase> attention_cases() {
  return {
      {"mesh::attention", kReal, draw_attention},
      {"mesh::attention_backward", kReal, draw_attention_backward},
      {"mesh::attention_over", kReal | kWide, draw_attention_over},
      {"mesh::attention_over_backward", kReal | kWide, draw_attention_over_backward},
      {"mesh::attention_result", kReal | kWide, draw_attention_result},
      {"mesh::document_attention", kReal, draw_document_attention},
      {"mesh::document_attention_backward", kReal, draw_document_attention_backward},
      {"mesh::document_attention_over", kReal | kWide, draw_document_attention_over},
      {"mesh::document_attention_over_backward", kReal | kWide, draw_document_attention_over_backward},
  };
}

OpCase composite_attention() { return {"scaled_dot_product_attention", kReal | kGradient, draw_scaled_dot_product}; }

}  // namespace lockstep::testing

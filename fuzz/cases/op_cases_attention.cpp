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

/// Of what each query row draws; of half of the calls nothing is dropped, of some all is.
mesh_ops::Dropout draw_dropout(Inputs& in, const AttentionSizes& s) {
  constexpr double kShares[] = {0, 0, 0.3, 0.75, 1};
  const double share = kShares[in.number(0, 4)];
  if (share <= 0) return {};
  auto draws = in.integers({s.batch, s.heads * s.group, s.queries, mesh_ops::kAttentionDraws}, 1 << 20, 1 << 30);
  return {draws, share};
}

void push(Stack& stack, const mesh_ops::Dropout& dropout) {
  stack.emplace_back(dropout.draws ? c10::IValue(*dropout.draws) : c10::IValue());
  stack.emplace_back(dropout.share);
}

Stack draw_draws(Inputs& in) {
  const auto s = draw_attention_sizes(in);
  return {in.tensor({s.batch, s.heads * s.group, s.queries, s.width}), in.number(0, 7), in.number(0, 3)};
}

AttentionSizes draw_document_sizes(Inputs& in) {
  auto s = draw_attention_sizes(in);
  s.keys = s.queries;
  return s;
}

Stack draw_document_attention(Inputs& in) {
  const auto s = draw_document_sizes(in);
  auto stack = draw_query_key_value(in, s);
  stack.emplace_back(draw_places(in, s));
  push(stack, draw_dropout(in, s));
  stack.emplace_back(scale_for(s)), stack.emplace_back(int64_t{0});
  return stack;
}

Stack draw_document_attention_backward(Inputs& in) {
  const auto s = draw_document_sizes(in);
  const auto operands = draw_query_key_value(in, s);
  const auto query = operands[0].toTensor(), key = operands[1].toTensor(), value = operands[2].toTensor();
  const auto places = draw_places(in, s);
  const auto dropout = draw_dropout(in, s);
  const auto [output, log_sum] = mesh_ops::document_attention(query, key, value, places, dropout, scale_for(s));
  Stack stack{in.tensor(output.sizes().vec()), query, key, value, output, log_sum, places};
  push(stack, dropout);
  stack.emplace_back(scale_for(s)), stack.emplace_back(int64_t{0});
  return stack;
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
  for (const auto& tensor : {sums, weights, draw_places(in, s)}) stack.emplace_back(tensor);
  push(stack, draw_dropout(in, s));
  stack.emplace_back(scale_for(s)), stack.emplace_back(in.number(-3, 3));
  return stack;
}

Stack draw_document_attention_over_backward(Inputs& in) {
  auto stack = draw_attention_over_backward(in);
  const auto query = stack[1].toTensor();
  AttentionSizes s{};
  s.batch = query.size(0), s.heads = query.size(1), s.group = 1, s.queries = query.size(2);
  Stack with(stack.begin(), stack.begin() + 7);
  with.emplace_back(draw_places(in, s));
  push(with, draw_dropout(in, s));
  with.insert(with.end(), stack.begin() + 8, stack.end());  // `causal` is left out
  return with;
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
      {"mesh::attention_draws", kExact | kOwnPeer, draw_draws},
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

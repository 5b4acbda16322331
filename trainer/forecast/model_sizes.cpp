#include "trainer/forecast/model_sizes.h"

namespace lockstep::trainer::forecast {
namespace {

/// A feed-forward with a gate has three maps.
constexpr int64_t kMaps = 3;

AttentionSizes attention_of(const models::LlamaOptions& o) {
  const int64_t queries = o.heads * o.head_size(), keys = o.key_value_heads * o.head_size(), all = queries + 2 * keys;
  AttentionSizes sizes{.key_value_heads = o.key_value_heads, .out_parameters = queries * o.width};
  sizes.parameters = o.width * all + sizes.out_parameters + (o.attention_bias ? all : 0);
  if (o.query_key_norm) sizes.parameters += 2 * o.head_size();
  sizes.projected = all, sizes.scored = queries + keys, sizes.given = queries;
  sizes.keys_and_values = 2 * keys, sizes.products = 2 * queries;
  return sizes;
}

AttentionSizes attention_of(const models::LlamaOptions& o, const models::LatentOptions& latent) {
  const int64_t queries = o.heads * latent.head_size(), values = o.heads * latent.value_size;
  const int64_t keys_and_values = o.heads * latent.plain_size + values, rank = latent.key_value_rank;
  AttentionSizes sizes{.key_value_heads = o.heads, .out_parameters = values * o.width};
  const int64_t to_queries =
      latent.query_rank == 0 ? o.width * queries : latent.query_rank * (o.width + 1 + queries);  // down, a norm, up
  sizes.parameters = to_queries + o.width * (rank + latent.rotated_size) + rank * (1 + keys_and_values);
  sizes.parameters += sizes.out_parameters;
  sizes.projected = latent.query_rank + queries + rank + latent.rotated_size + keys_and_values;
  sizes.scored = 2 * queries, sizes.given = values;
  sizes.keys_and_values = queries + values, sizes.products = queries + values;
  return sizes;
}

}  // namespace

ModelSizes sizes_of(const models::LlamaOptions& o) {
  return {o.layers, o.width, o.vocabulary, o.hidden, o.tied_head, attention_of(o)};
}

ModelSizes sizes_of(const models::MoeOptions& o) {
  auto sizes = sizes_of(o.dense);
  if (o.latent.enabled()) sizes.attention = attention_of(o.dense, o.latent);
  const auto& e = o.experts;
  sizes.experts = {.every = o.experts_every, .count = e.count, .per_token = e.per_token, .hidden = e.hidden};
  sizes.experts.has_biases = e.balance_rate > 0, sizes.experts.shared_hidden = e.shared * e.hidden;
  for (int64_t layer = 0; layer < o.dense.layers; ++layer) sizes.experts.layers += o.has_experts(layer) ? 1 : 0;
  return sizes;
}

LayerSizes dense_layer(const ModelSizes& m) {
  LayerSizes layer;
  layer.everywhere = static_cast<double>(m.attention.parameters + kMaps * m.width * m.hidden + 2 * m.width);
  layer.out_parameters = static_cast<double>(m.attention.out_parameters + m.width * m.hidden);
  layer.hidden = static_cast<double>(m.hidden);
  return layer;
}

LayerSizes expert_layer(const ModelSizes& m) {
  const auto& e = m.experts;
  const int64_t one = kMaps * m.width * e.hidden, shared = kMaps * m.width * e.shared_hidden;
  const int64_t hidden = e.per_token * e.hidden + e.shared_hidden,
                router = (m.width + (e.has_biases ? 1 : 0)) * e.count;
  LayerSizes layer;
  layer.everywhere = static_cast<double>(m.attention.parameters + router + shared + 2 * m.width);
  layer.routed = static_cast<double>(e.count * one), layer.chosen = static_cast<double>(e.per_token * one);
  layer.out_parameters = static_cast<double>(m.attention.out_parameters + m.width * hidden);
  layer.hidden = static_cast<double>(hidden), layer.rows = static_cast<double>(e.per_token);
  return layer;
}

double ModelSizes::parameters() const {
  double all = outer_parameters();
  all += static_cast<double>(layers - experts.layers) * dense_layer(*this).parameters();
  if (has_experts()) all += static_cast<double>(experts.layers) * expert_layer(*this).parameters();
  return all;
}

double ModelSizes::operations_per_token(int64_t seq_len) const {
  double met = table_parameters() + static_cast<double>(width);
  met += static_cast<double>(layers - experts.layers) * dense_layer(*this).met();
  if (has_experts()) met += static_cast<double>(experts.layers) * expert_layer(*this).met();
  return 6 * met + 6 * static_cast<double>(layers * attention.products * seq_len);
}

}  // namespace lockstep::trainer::forecast

#include "models/families/llama_layers.h"

#include <ATen/Functions.h>

#include <cmath>

#include "models/rope.h"
#include "models/sizes.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep::models {

using at::Tensor;

Initial truncated(double deviation) { return Initial::drawn(rng::truncated_normal(0, deviation, -2, 2)); }

double depth_deviation(int64_t layer) { return 0.02 / std::sqrt(2.0 * static_cast<double>(layer + 1)); }

Tensor rotated(const Tensor& x, const Places& places) {
  return places.documents.are_packed() ? rotate_each(x, places.cosines, places.sines)
                                       : rotate(x, places.cosines, places.sines);
}

namespace {

int64_t rows_per_group(const LlamaOptions& o) { return (o.heads / o.key_value_heads + 2) * o.head_size(); }

int64_t columns_per_group(const LlamaOptions& o) { return o.heads / o.key_value_heads * o.head_size(); }

int64_t groups_per_unit(const LlamaOptions& o, int64_t rows, int64_t columns) {
  return o.cut_between_leaves ? groups_per_leaf(o.key_value_heads, rows, columns) : 1;
}

int64_t heads_per_unit(const LlamaOptions& o) { return groups_per_unit(o, rows_per_group(o), columns_per_group(o)); }
int64_t hidden_per_unit(const LlamaOptions& o) {
  const int64_t rows = o.hidden / o.key_value_heads;
  return rows * groups_per_unit(o, 2 * rows, rows);
}

std::vector<Part> qkv_parts(const LlamaOptions& o, const std::string& path, const char* kind, const Initial& initial) {
  const int64_t queries = o.heads / o.key_value_heads;
  return {{fmt::format("{}.wq.{}", path, kind), queries * o.head_size(), initial},
          {fmt::format("{}.wk.{}", path, kind), o.head_size(), initial},
          {fmt::format("{}.wv.{}", path, kind), o.head_size(), initial}};
}

Linear::Options qkv_options(const LlamaOptions& o, const std::string& path) {
  const int64_t rows = rows_per_group(o);
  Linear::Options options{
      o.width, o.key_value_heads * rows, "heads embed", truncated(0.02), {heads_per_unit(o) * rows, 1}};
  options.parts = qkv_parts(o, path, "weight", truncated(0.02));
  options.bias = o.attention_bias;
  if (o.attention_bias) options.bias_parts = qkv_parts(o, path, "bias", Initial::fill(0));
  return options;
}

/// The gate starts as the attention's inputs do, up as an output of its layer.
std::vector<Part> gate_up_parts(int64_t group_rows, const std::string& path, int64_t layer) {
  return {{path + ".w1.weight", group_rows, truncated(0.02)},
          {path + ".w3.weight", group_rows, truncated(depth_deviation(layer))}};
}

Linear::Options fused(Linear::Options options, std::vector<Part> parts) {
  options.parts = std::move(parts);
  return options;
}

Linear::Options out_options(const LlamaOptions& o, int64_t layer) {
  const int64_t columns = heads_per_unit(o) * columns_per_group(o);
  return {o.heads * o.head_size(), o.width, "embed heads", truncated(depth_deviation(layer)), {1, columns}};
}

}  // namespace

Attention::Attention(Module& owner, std::string name, const LlamaOptions& options, int64_t layer)
    : Module(owner, std::move(name)),
      options_(options),
      rotates_(options.rotates(layer)),
      qkv_(*this, "qkv", qkv_options(options, path())),
      out_(*this, "wo", out_options(options, layer)) {
  if (!options.query_key_norm) return;
  query_norm_ = std::make_unique<RmsNorm>(*this, "q_norm", options.head_size(), options.norm_epsilon);
  key_norm_ = std::make_unique<RmsNorm>(*this, "k_norm", options.head_size(), options.norm_epsilon);
}

/// Queries or keys [batch, length, heads, size] as attention takes them, [batch, heads, length, size].
Tensor Attention::placed(const Tensor& x, const std::unique_ptr<RmsNorm>& norm, const Places& places) const {
  const auto heads = x.transpose(1, 2);
  const auto normed = norm ? norm->forward(heads) : heads;
  return rotates_ ? rotated(normed, places) : normed;
}

/// Of groups of queries [batch, length, groups, queries * size]: [batch, heads, length, size]. Rotated as they lie they
/// are copied once.
Tensor Attention::placed_queries(const Tensor& x, const Places& places) const {
  const int64_t batch = x.size(0), length = x.size(1), groups = x.size(2), size = options_.head_size();
  if (!rotates_ || !places.group_cosines.defined())
    return placed(x.reshape({batch, length, options_.heads, size}), query_norm_, places);
  const auto turned = rotate(x.transpose(1, 2), places.group_cosines, places.group_sines).transpose(1, 2);
  return turned.view({batch, length, groups, x.size(3) / size, size}).flatten(2, 3).transpose(1, 2);
}

Tensor Attention::forward(const Tensor& x, const Places& places) {
  const auto open = scope();
  const int64_t batch = x.size(0), length = x.size(1), size = options_.head_size();
  const int64_t groups = options_.key_value_heads, queries = options_.heads / groups;
  const auto qkv = qkv_.forward(x).view({batch, length, groups, (queries + 2) * size});
  const auto parts = qkv.split_with_sizes({queries * size, size, size}, 3);
  const auto key = placed(parts[1], key_norm_, places);
  const auto query = placed_queries(parts[0], places);
  const auto value = parts[2].transpose(1, 2);
  const auto mixed = causal_attention(path(), query, key, value, options_.attention_dropout, places.documents);
  return out_.forward(mixed.transpose(1, 2).reshape({batch, length, options_.heads * size}));
}

FeedForward::FeedForward(Module& owner, std::string name, const LlamaOptions& o, int64_t layer)
    : Module(owner, std::move(name)),
      groups_(o.key_value_heads),
      group_rows_(o.hidden / o.key_value_heads),
      gate_up_(*this, "gate_up",
               fused({o.width, 2 * o.hidden, "ffn embed", truncated(0.02), {2 * hidden_per_unit(o), 1}},
                     gate_up_parts(group_rows_, path(), layer))),
      down_(*this, "w2", {o.hidden, o.width, "embed ffn", truncated(depth_deviation(layer)), {1, hidden_per_unit(o)}}) {
}

Tensor FeedForward::forward(const Tensor& x) {
  const auto open = scope();
  const auto both = gate_up_.forward(x).view({x.size(0), x.size(1), groups_, 2, group_rows_});
  return down_.forward(mesh_ops::swiglu(both).view({x.size(0), x.size(1), groups_ * group_rows_}));
}

}  // namespace lockstep::models

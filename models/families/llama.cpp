#include "models/families/llama.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "core/error.h"
#include "models/key_value_cache.h"
#include "models/sizes.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep::models {
namespace {

using at::Tensor;

constexpr Flavor<LlamaOptions> kFlavors[] = {
    {"debugmodel", {}},
    {"1B", {2048, 16, 32, 8, 8192, 128256, 2048, true, 500000, 32}},
    {"3B", {3072, 28, 24, 8, 8192, 128256, 2048, true, 500000, 32}},
    {"8B", {4096, 32, 32, 8, 14336, 128256, 2048}},
    {"70B", {8192, 80, 64, 8, 28672, 128256, 2048}},
    {"405B", {16384, 126, 128, 8, 53248, 128256, 2048}},
};

/// Normal of this deviation, cut at two units, as torchtitan initialises.
Initial truncated(double deviation) { return Initial::drawn(rng::truncated_normal(0, deviation, -2, 2)); }

/// Later layers' outputs start smaller, so that the residual stream keeps its size.
double depth_deviation(int64_t layer) { return 0.02 / std::sqrt(2.0 * static_cast<double>(layer + 1)); }

Initial head_initial(int64_t width) {
  const double deviation = 1 / std::sqrt(static_cast<double>(width));
  return Initial::drawn(rng::truncated_normal(0, deviation, -3 * deviation, 3 * deviation));
}

int64_t rows_per_group(const LlamaOptions& o) { return (o.heads / o.key_value_heads + 2) * o.head_size(); }

int64_t groups_per_unit(const LlamaOptions& o, int64_t rows, int64_t columns) {
  return o.cut_between_leaves ? groups_per_leaf(o.key_value_heads, rows, columns) : 1;
}

int64_t heads_per_unit(const LlamaOptions& o) {
  return groups_per_unit(o, rows_per_group(o), o.width / o.key_value_heads);
}
int64_t hidden_per_unit(const LlamaOptions& o) {
  const int64_t rows = o.hidden / o.key_value_heads;
  return rows * groups_per_unit(o, 2 * rows, rows);
}

int64_t vocabulary_unit(const LlamaOptions& o) { return o.cut_between_leaves ? leaf_of(o.vocabulary) : 1; }

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
  const int64_t columns = heads_per_unit(o) * o.width / o.key_value_heads;
  return {o.width, o.width, "embed heads", truncated(depth_deviation(layer)), {1, columns}};
}

}  // namespace

void require_fitting_sizes(const LlamaOptions& o) {
  require_multiple("width", o.width, "heads", o.heads);
  require_multiple("heads", o.heads, "key_value_heads", o.key_value_heads);
  require_multiple("hidden", o.hidden, "key_value_heads", o.key_value_heads);
  if (o.head_size() % 2 != 0)
    fail<BadInput>(
        "model.width {} over model.heads {} gives heads of {} elements, which must be even: rotations turn pairs.",
        o.width, o.heads, o.head_size());
}

LlamaOptions llama_flavor(const std::string& name) { return flavor_of<LlamaOptions>("llama3", kFlavors, name); }

std::vector<std::string> llama_flavors() { return names_of<LlamaOptions>(kFlavors); }

Attention::Attention(Module& owner, std::string name, const LlamaOptions& options, int64_t layer)
    : Module(owner, std::move(name)),
      options_(options),
      qkv_(*this, "qkv", qkv_options(options, path())),
      out_(*this, "wo", out_options(options, layer)) {}

Tensor Attention::rotated(const Tensor& x, const Places& places) const {
  return places.documents.are_packed() ? rotate_each(x, places.cosines, places.sines)
                                       : rotate(x, places.cosines, places.sines);
}

Tensor Attention::forward(const Tensor& x, const Places& places) {
  const auto open = scope();
  const int64_t batch = x.size(0), length = x.size(1), size = options_.head_size();
  const int64_t groups = options_.key_value_heads, queries = options_.heads / groups;
  const auto qkv = qkv_.forward(x).view({batch, length, groups, queries + 2, size});
  const auto parts = qkv.split_with_sizes({queries, 1, 1}, 3);
  const auto query = parts[0].reshape({batch, length, options_.heads, size}).transpose(1, 2);
  const auto key = rotated(parts[1].squeeze(3).transpose(1, 2), places);
  const auto value = parts[2].squeeze(3).transpose(1, 2);
  const auto mixed =
      causal_attention(path(), rotated(query, places), key, value, options_.attention_dropout, places.documents);
  return out_.forward(mixed.transpose(1, 2).reshape({batch, length, options_.width}));
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

TransformerBlock::TransformerBlock(Module& owner, std::string name, const LlamaOptions& options, int64_t layer)
    : Module(owner, std::move(name)),
      dropout_(options.dropout),
      attention_norm_(*this, "attention_norm", options.width, options.norm_epsilon),
      feed_forward_norm_(*this, "ffn_norm", options.width, options.norm_epsilon),
      attention_(*this, "attention", options, layer),
      feed_forward_(*this, "feed_forward", options, layer) {}

Tensor TransformerBlock::forward(const Tensor& x, const Places& places) {
  const auto open = scope();
  const auto h =
      residual(x, attention_norm_, dropout_, [&](const Tensor& normed) { return attention_.forward(normed, places); });
  return residual(h, feed_forward_norm_, dropout_, [&](const Tensor& normed) { return feed_forward_.forward(normed); });
}

Head::Head(Module& owner, std::string name, const LlamaOptions& options, const Embedding& embedding)
    : Module(owner, std::move(name)), norm_(*this, "norm", options.width, options.norm_epsilon), embedding_(embedding) {
  if (!options.tied_head)
    output_ = std::make_unique<Linear>(*this, "output",
                                       Linear::Options{options.width,
                                                       options.vocabulary,
                                                       "vocab embed",
                                                       head_initial(options.width),
                                                       {vocabulary_unit(options), 1}});
  store_as_own(*this);
}

Tensor Head::forward(const Tensor& x) {
  const auto open = scope();
  const auto normed = annotate(norm_.forward(x), "batch length embed");
  return output_ ? output_->forward(normed) : at::linear(normed, embedding_.weight());
}

std::vector<const Parameter*> Head::shared() const {
  return output_ ? std::vector<const Parameter*>{} : std::vector{&embedding_.weight()};
}

Llama::Llama(const LlamaOptions& options)
    : options_(options),
      tables_(rope_tables({options.head_size(), options.rope_theta, options.rope_factor}, options.length)),
      embedding_(*this, "tok_embeddings", options.vocabulary, options.width, Initial::drawn(rng::normal(0, 1)),
                 vocabulary_unit(options)),
      head_(*this, "head", options, embedding_) {
  for (int64_t layer = 0; layer < options.layers; ++layer)
    layers_.push_back(std::make_unique<TransformerBlock>(*this, fmt::format("layers.{}", layer), options, layer));
}

Places Llama::places(int64_t length) const {
  const int64_t first = first_position();
  Places places{constant(tables_.cosines.narrow(0, first, length)), constant(tables_.sines.narrow(0, first, length)),
                current_documents()};
  if (!places.documents.are_packed()) return places;
  const auto& rows = places.documents.positions;
  return {at::embedding(places.cosines, rows), at::embedding(places.sines, rows), places.documents};
}

std::vector<BlockCall> Llama::block_calls(at::IntArrayRef tokens) {
  if (const auto length = first_position() + tokens[1]; length > options_.length)
    fail<BadInput>("a sequence of {} tokens is longer than the model's {}", length, options_.length);
  const auto places = this->places(tokens[1]);
  std::vector<BlockCall> calls{
      {[this](const Tensor& input) { return annotate(embedding_.forward(input), "batch norm_length embed"); }}};
  for (auto& layer : layers_)
    calls.push_back({[&block = *layer, places](const Tensor& input) { return block.forward(input, places); }});
  calls.push_back({[this](const Tensor& input) { return head_.forward(input); }, head_.shared()});
  return calls;
}

std::string Llama::sizes_text() const {
  const auto& o = options_;
  return fmt::format("width {}, layers {}, heads {}, key_value_heads {}, hidden {}, vocabulary {}, {}", o.width,
                     o.layers, o.heads, o.key_value_heads, o.hidden, o.vocabulary, dropout_text(o));
}

/// A table of rows is read, not multiplied with, unless the head uses it.
double Llama::operations_per_token(int64_t length) const {
  const auto& o = options_;
  const int64_t table = o.tied_head ? 0 : o.vocabulary * o.width;
  return 6 * static_cast<double>(parameter_count() - table) + attention_operations(o.layers, o.width, length);
}

std::vector<Module*> Llama::blocks() {
  std::vector<Module*> all{&embedding_};
  for (auto& layer : layers_) all.push_back(layer.get());
  all.push_back(&head_);
  return all;
}

}  // namespace lockstep::models

#include "models/families/gpt2.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "core/error.h"
#include "models/key_value_cache.h"
#include "models/sizes.h"

namespace lockstep::models {
namespace {

using at::Tensor;

constexpr Flavor<Gpt2Options> kFlavors[] = {
    {"debugmodel", {}},
    {"124M", {768, 12, 12, 3072, 50257}},
    {"355M", {1024, 24, 16, 4096, 50257}},
    {"774M", {1280, 36, 20, 5120, 50257}},
    {"1.5B", {1600, 48, 25, 6400, 50257}},
};

Initial small() { return Initial::drawn(rng::normal(0, 0.02)); }

/// What is added to the residual stream, twice per layer, starts smaller, so that the stream keeps its size.
Initial smaller(const Gpt2Options& o) {
  return Initial::drawn(rng::normal(0, 0.02 / std::sqrt(2.0 * static_cast<double>(o.layers))));
}

int64_t heads_per_unit(const Gpt2Options& o) {
  return o.cut_between_leaves ? groups_per_leaf(o.heads, 3 * o.head_size(), o.head_size()) : 1;
}
int64_t unit_of(const Gpt2Options& o, int64_t elements) { return o.cut_between_leaves ? leaf_of(elements) : 1; }

/// Rows of query, key and value, of each head by itself.
std::vector<Part> qkv_parts(const Gpt2Options& o, const std::string& path, const std::string& tensor,
                            const Initial& initial) {
  std::vector<Part> parts;
  for (const char* name : {"wq", "wk", "wv"})
    parts.push_back({fmt::format("{}.{}.{}", path, name, tensor), o.head_size(), initial});
  return parts;
}

Linear::Options qkv_options(const Gpt2Options& o, const std::string& path) {
  return {.in = o.width,
          .out = 3 * o.width,
          .axes = "heads embed",
          .initial = small(),
          .units = {heads_per_unit(o) * 3 * o.head_size(), 1},
          .bias = true,
          .parts = qkv_parts(o, path, "weight", small()),
          .bias_parts = qkv_parts(o, path, "bias", Initial::fill(0))};
}

Linear::Options out_options(const Gpt2Options& o) {
  return {o.width, o.width, "embed heads", smaller(o), {1, heads_per_unit(o) * o.head_size()}, /*bias=*/true};
}
Linear::Options up_options(const Gpt2Options& o) {
  return {o.width, o.hidden, "ffn embed", small(), {unit_of(o, o.hidden), 1}, /*bias=*/true};
}
Linear::Options down_options(const Gpt2Options& o) {
  return {o.hidden, o.width, "embed ffn", smaller(o), {1, unit_of(o, o.hidden)}, /*bias=*/true};
}

}  // namespace

void require_fitting_sizes(const Gpt2Options& o) { require_multiple("width", o.width, "heads", o.heads); }

Gpt2Options gpt2_flavor(const std::string& name) { return flavor_of<Gpt2Options>("gpt2", kFlavors, name); }

Gpt2Embeddings::Gpt2Embeddings(Module& owner, std::string name, const Gpt2Options& o)
    : Module(owner, std::move(name)),
      dropout_(o.dropout),
      tokens_(*this, "tok_embeddings", o.vocabulary, o.width, small(), unit_of(o, o.vocabulary)),
      positions_(*this, "pos_embeddings", o.positions, o.width, small(), 1, "positions") {
  store_as_own(*this);
}

Tensor Gpt2Embeddings::forward(const Tensor& tokens, const Tensor& positions) {
  const auto open = scope();
  const auto placed = [](const Tensor& rows) { return annotate(rows, "batch norm_length embed"); };
  return dropped(placed(tokens_.forward(tokens)) + placed(positions_.forward(positions)), dropout_);
}

Gpt2Attention::Gpt2Attention(Module& owner, std::string name, const Gpt2Options& o)
    : Module(owner, std::move(name)),
      heads_(o.heads),
      attention_dropout_(o.attention_dropout),
      qkv_(*this, "qkv", qkv_options(o, path())),
      out_(*this, "wo", out_options(o)) {}

Tensor Gpt2Attention::forward(const Tensor& x, const Documents& documents) {
  const auto open = scope();
  const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
  const auto parts = qkv_.forward(x).view({batch, length, heads_, 3, width / heads_}).unbind(3);
  const auto query = parts[0].transpose(1, 2), key = parts[1].transpose(1, 2), value = parts[2].transpose(1, 2);
  const auto mixed = causal_attention(path(), query, key, value, attention_dropout_, documents);
  return out_.forward(mixed.transpose(1, 2).reshape({batch, length, width}));
}

Gpt2FeedForward::Gpt2FeedForward(Module& owner, std::string name, const Gpt2Options& o)
    : Module(owner, std::move(name)), up_(*this, "w1", up_options(o)), down_(*this, "w2", down_options(o)) {}

Tensor Gpt2FeedForward::forward(const Tensor& x) {
  const auto open = scope();
  return down_.forward(at::gelu(up_.forward(x), /*approximate=*/"tanh"));
}

Gpt2Block::Gpt2Block(Module& owner, std::string name, const Gpt2Options& o)
    : Module(owner, std::move(name)),
      dropout_(o.dropout),
      attention_norm_(*this, "attention_norm", o.width),
      feed_forward_norm_(*this, "ffn_norm", o.width),
      attention_(*this, "attention", o),
      feed_forward_(*this, "feed_forward", o) {}

Tensor Gpt2Block::forward(const Tensor& x, const Documents& documents) {
  const auto open = scope();
  const auto h =
      residual(x, attention_norm_, dropout_, [&](const Tensor& y) { return attention_.forward(y, documents); });
  return residual(h, feed_forward_norm_, dropout_, [this](const Tensor& y) { return feed_forward_.forward(y); });
}

Gpt2Head::Gpt2Head(Module& owner, std::string name, const Gpt2Options& o, const Embedding& tokens)
    : Module(owner, std::move(name)), norm_(*this, "norm", o.width), tokens_(tokens) {
  store_as_own(*this);
}

Tensor Gpt2Head::forward(const Tensor& x) {
  const auto open = scope();
  const auto normed = annotate(norm_.forward(x), "batch length embed");
  const Tensor table = tokens_.weight();
  return at::linear(widened_for(table, normed), table);
}

Gpt2::Gpt2(const Gpt2Options& options)
    : options_(options),
      positions_(at::arange(options.positions, at::kLong)),
      embeddings_(*this, "embeddings", options),
      head_(*this, "head", options, embeddings_.tokens()) {
  for (int64_t layer = 0; layer < options.layers; ++layer)
    layers_.push_back(std::make_unique<Gpt2Block>(*this, fmt::format("layers.{}", layer), options));
}

std::vector<BlockCall> Gpt2::block_calls(at::IntArrayRef tokens) {
  const int64_t length = tokens[1], first = first_position();
  if (first + length > options_.positions)
    fail<BadInput>("a sequence of {} tokens is longer than the model's {} positions", first + length,
                   options_.positions);
  const auto documents = current_documents();
  std::vector<BlockCall> calls{{[this, documents, first, length](const Tensor& input) {
    // Each sample reads the table by itself, so that its gradient is a sum over samples, as that of the tokens' is.
    const auto positions = documents.are_packed()
                               ? documents.positions
                               : at::zeros_like(input) + constant(positions_.narrow(0, first, length));
    return embeddings_.forward(input, positions);
  }}};
  for (auto& layer : layers_)
    calls.push_back({[&block = *layer, documents](const Tensor& input) { return block.forward(input, documents); }});
  calls.push_back({[this](const Tensor& input) { return head_.forward(input); }, {&embeddings_.tokens().weight()}});
  return calls;
}

std::string Gpt2::sizes_text() const {
  const auto& o = options_;
  return fmt::format("width {}, layers {}, heads {}, hidden {}, vocabulary {}, positions {}, {}", o.width, o.layers,
                     o.heads, o.hidden, o.vocabulary, o.positions, dropout_text(o));
}

/// The head is the table of tokens; that of positions is only read.
double Gpt2::operations_per_token(int64_t length) const {
  const auto& o = options_;
  return 6 * static_cast<double>(parameter_count() - o.positions * o.width) +
         attention_operations(o.layers, o.width, length);
}

std::vector<Module*> Gpt2::blocks() {
  std::vector<Module*> all{&embeddings_};
  for (auto& layer : layers_) all.push_back(layer.get());
  all.push_back(&head_);
  return all;
}

}  // namespace lockstep::models

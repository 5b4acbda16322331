#pragma once
#include <torch/torch.h>

/// Models of attention as one writes them for one device: nothing in here knows of meshes.
namespace examples {

constexpr int64_t kWidth = 16, kHeads = 4, kVocabulary = 32, kLength = 8;

/// [batch, length, width] as [batch, heads, length, width / heads].
inline at::Tensor heads(const at::Tensor& x) { return x.view({x.size(0), x.size(1), kHeads, -1}).transpose(1, 2); }

/// Attention of `x` to `memory`, which may be itself.
struct AttentionImpl : torch::nn::Module {
  AttentionImpl(bool is_causal, double dropout_rate) : causal(is_causal), dropout(dropout_rate) {
    query = register_module("query", torch::nn::Linear(kWidth, kWidth));
    key = register_module("key", torch::nn::Linear(kWidth, kWidth));
    value = register_module("value", torch::nn::Linear(kWidth, kWidth));
    output = register_module("output", torch::nn::Linear(kWidth, kWidth));
  }
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory) {
    const auto mixed = at::scaled_dot_product_attention(heads(query(x)), heads(key(memory)), heads(value(memory)), {},
                                                        dropout, causal);
    return output(mixed.transpose(1, 2).reshape(x.sizes()));
  }

  bool causal;
  double dropout;
  torch::nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, output{nullptr};
};
TORCH_MODULE(Attention);

struct FeedForwardImpl : torch::nn::Module {
  FeedForwardImpl(int64_t width, int64_t inner) {
    up = register_module("up", torch::nn::Linear(width, inner));
    down = register_module("down", torch::nn::Linear(inner, width));
  }
  at::Tensor forward(const at::Tensor& x) { return down(at::gelu(up(x), "tanh")); }

  torch::nn::Linear up{nullptr}, down{nullptr};
};
TORCH_MODULE(FeedForward);

inline torch::nn::LayerNorm norm() { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})); }

/// Attention to itself and, in a decoder, to an encoder's result.
struct BlockImpl : torch::nn::Module {
  BlockImpl(bool causal, double dropout, bool decodes) {
    self_norm = register_module("self_norm", norm());
    self = register_module("self", Attention(causal, dropout));
    if (decodes) {
      cross_norm = register_module("cross_norm", norm());
      cross = register_module("cross", Attention(false, dropout));
    }
    forward_norm = register_module("forward_norm", norm());
    feed_forward = register_module("feed_forward", FeedForward(kWidth, 4 * kWidth));
  }
  at::Tensor forward(at::Tensor x, const at::Tensor& memory = {}) {
    const auto normal = self_norm(x);
    x = x + self(normal, normal);
    if (cross) x = x + cross(cross_norm(x), memory);
    return x + feed_forward(forward_norm(x));
  }

  torch::nn::LayerNorm self_norm{nullptr}, cross_norm{nullptr}, forward_norm{nullptr};
  Attention self{nullptr}, cross{nullptr};
  FeedForward feed_forward{nullptr};
};
TORCH_MODULE(Block);

/// Mean cross-entropy of logits [batch, length, vocabulary].
inline at::Tensor token_loss(const at::Tensor& logits, const at::Tensor& targets) {
  return at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}), targets.reshape({-1}));
}

/// GPT-2 with dropout of attention's weights, and its head tied to the embedding.
struct Gpt2 : torch::nn::Module {
  Gpt2() {
    tokens = register_module("tokens", torch::nn::Embedding(kVocabulary, kWidth));
    positions = register_module("positions", torch::nn::Embedding(kLength, kWidth));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < 2; ++i) blocks->push_back(Block(true, 0.1, false));
    last_norm = register_module("last_norm", norm());
  }
  at::Tensor loss(const at::Tensor& ids, const at::Tensor& targets) {
    auto x = tokens(ids) + positions->weight;
    for (const auto& block : *blocks) x = block->as<Block>()->forward(x);
    return token_loss(at::linear(last_norm(x), tokens->weight), targets);
  }

  torch::nn::Embedding tokens{nullptr}, positions{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  torch::nn::LayerNorm last_norm{nullptr};
};

/// Reads a sequence with an encoder, and predicts the targets from it and from themselves.
struct EncoderDecoder : torch::nn::Module {
  EncoderDecoder() {
    tokens = register_module("tokens", torch::nn::Embedding(kVocabulary, kWidth));
    encoder = register_module("encoder", Block(false, 0.0, false));
    decoder = register_module("decoder", Block(true, 0.0, true));
    head = register_module("head", torch::nn::Linear(kWidth, kVocabulary));
  }
  at::Tensor loss(const at::Tensor& ids, const at::Tensor& targets) {
    const auto memory = encoder(tokens(ids));
    return token_loss(head(decoder(tokens(targets), memory)), targets);
  }

  torch::nn::Embedding tokens{nullptr};
  Block encoder{nullptr}, decoder{nullptr};
  torch::nn::Linear head{nullptr};
};

}  // namespace examples

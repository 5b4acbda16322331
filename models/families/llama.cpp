#include "models/families/llama.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include "models/sizes.h"

namespace lockstep::models {

using at::Tensor;

TransformerBlock::TransformerBlock(Module& owner, std::string name, const LlamaOptions& options, int64_t layer)
    : DecoderBlock(owner, std::move(name)),
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

Llama::Llama(const LlamaOptions& options) : Decoder(options, options.head_size()), options_(options) {
  for (int64_t layer = 0; layer < options.layers; ++layer)
    add(std::make_unique<TransformerBlock>(*this, fmt::format("layers.{}", layer), options, layer));
}

std::string Llama::sizes_text() const {
  const auto& o = options_;
  return fmt::format("width {}, layers {}, heads {}, key_value_heads {}, hidden {}, vocabulary {}, {}", o.width,
                     o.layers, o.heads, o.key_value_heads, o.hidden, o.vocabulary, dropout_text(o));
}

double Llama::operations_per_token(int64_t length) const {
  const auto& o = options_;
  return 6 * static_cast<double>(parameter_count() - looked_up()) + attention_operations(o.layers, o.width, length);
}

}  // namespace lockstep::models

#include "models/families/moe.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include "models/hooks.h"
#include "models/sizes.h"

namespace lockstep::models {

using at::Tensor;

MoeBlock::MoeBlock(Module& owner, std::string name, const MoeOptions& o, int64_t layer)
    : DecoderBlock(owner, std::move(name)),
      dropout_(o.dense.dropout),
      attention_norm_(*this, "attention_norm", o.dense.width, o.dense.norm_epsilon),
      feed_forward_norm_(*this, "ffn_norm", o.dense.width, o.dense.norm_epsilon) {
  if (o.latent.enabled())
    latent_attention_ = std::make_unique<LatentAttention>(*this, "attention", o.dense, o.latent, layer);
  else
    attention_ = std::make_unique<Attention>(*this, "attention", o.dense, layer);
  if (o.has_experts(layer))
    experts_ = std::make_unique<MixtureOfExperts>(*this, "moe", o.experts, o.dense, layer);
  else
    feed_forward_ = std::make_unique<FeedForward>(*this, "feed_forward", o.dense, layer);
}

Tensor MoeBlock::attended(const Tensor& x, const Places& places) {
  return latent_attention_ ? latent_attention_->forward(x, places) : attention_->forward(x, places);
}

Tensor MoeBlock::forward(const Tensor& x, const Places& places) {
  const auto open = scope();
  const auto h = residual(x, attention_norm_, dropout_, [&](const Tensor& normed) { return attended(normed, places); });
  if (feed_forward_)
    return residual(h, feed_forward_norm_, dropout_,
                    [&](const Tensor& normed) { return feed_forward_->forward(normed); });
  return h + dropped(experts_->forward(feed_forward_norm_.forward(h)), dropout_);
}

Moe::Moe(const MoeOptions& options)
    : Decoder(options.dense, options.latent.enabled() ? options.latent.rotated_size : options.dense.head_size()),
      options_(options) {
  for (int64_t layer = 0; layer < options.dense.layers; ++layer)
    add(std::make_unique<MoeBlock>(*this, fmt::format("layers.{}", layer), options, layer));
}

std::string Moe::sizes_text() const {
  const auto& o = options_.dense;
  const auto& e = options_.experts;
  return fmt::format(
      "width {}, layers {}, heads {}, key_value_heads {}, experts {} of hidden {}, {} per token, {} shared, vocabulary "
      "{}, {}",
      o.width, o.layers, o.heads, o.key_value_heads, e.count, e.hidden, e.per_token, e.shared, o.vocabulary,
      dropout_text(o));
}

double Moe::operations_per_token(int64_t length) const {
  const auto& o = options_.dense;
  const auto& e = options_.experts;
  int64_t mixtures = 0;
  for (int64_t layer = 0; layer < o.layers; ++layer) mixtures += options_.has_experts(layer) ? 1 : 0;
  const int64_t not_chosen = mixtures * (e.count - e.per_token) * 3 * e.hidden * o.width;
  const int64_t elements =
      options_.latent.enabled() ? (options_.latent.head_size() + options_.latent.value_size) / 2 : o.head_size();
  return 6 * static_cast<double>(parameter_count() - looked_up() - not_chosen) +
         attention_operations(o.layers, o.heads * elements, length);
}

}  // namespace lockstep::models

#include "models/families/latent_attention.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "models/sizes.h"

namespace lockstep::models {
namespace {

using at::Tensor;

/// How many heads are cut together, so that all sums over them are cut between leaves.
int64_t heads_per_unit(const LlamaOptions& o, const LatentOptions& latent) {
  if (!o.cut_between_leaves) return 1;
  const auto queries_and_values = groups_per_leaf(o.heads, latent.head_size(), latent.value_size);
  const auto keys_and_values = groups_per_leaf(o.heads, latent.plain_size + latent.value_size, latent.value_size);
  return std::max(queries_and_values, keys_and_values);
}

/// To `size` elements of every head.
Linear::Options to_heads(const LlamaOptions& o, const LatentOptions& latent, int64_t in, int64_t size) {
  return {in, o.heads * size, "heads embed", truncated(0.02), {heads_per_unit(o, latent) * size, 1}};
}

Linear::Options out_options(const LlamaOptions& o, const LatentOptions& latent, int64_t layer) {
  return {o.heads * latent.value_size,
          o.width,
          "embed heads",
          truncated(depth_deviation(layer)),
          {1, heads_per_unit(o, latent) * latent.value_size}};
}

/// [batch, length, heads x size] -> [batch, heads, length, size].
Tensor in_heads(const Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

}  // namespace

LatentAttention::LatentAttention(Module& owner, std::string name, const LlamaOptions& o, const LatentOptions& latent,
                                 int64_t layer)
    : Module(owner, std::move(name)),
      options_(o),
      latent_(latent),
      key_value_down_(*this, "wkv_a",
                      {o.width, latent.key_value_rank + latent.rotated_size, "latent embed", truncated(0.02)}),
      key_value_norm_(*this, "kv_norm", latent.key_value_rank, o.norm_epsilon),
      key_value_up_(*this, "wkv_b", to_heads(o, latent, latent.key_value_rank, latent.plain_size + latent.value_size)),
      out_(*this, "wo", out_options(o, latent, layer)) {
  const auto rank = latent.query_rank, size = latent.head_size();
  if (rank == 0) {
    query_ = std::make_unique<Linear>(*this, "wq", to_heads(o, latent, o.width, size));
    return;
  }
  query_down_ =
      std::make_unique<Linear>(*this, "wq_a", Linear::Options{o.width, rank, "latent embed", truncated(0.02)});
  query_norm_ = std::make_unique<RmsNorm>(*this, "q_norm", rank, o.norm_epsilon);
  query_up_ = std::make_unique<Linear>(*this, "wq_b", to_heads(o, latent, rank, size));
}

Tensor LatentAttention::queries(const Tensor& x) {
  return query_ ? query_->forward(x) : query_up_->forward(query_norm_->forward(query_down_->forward(x)));
}

Tensor LatentAttention::forward(const Tensor& x, const Places& places) {
  const auto open = scope();
  const int64_t heads = options_.heads, plain = latent_.plain_size, turned = latent_.rotated_size;
  const auto query = in_heads(queries(x), heads).split_with_sizes({plain, turned}, 3);
  const auto down = key_value_down_.forward(x).split_with_sizes({latent_.key_value_rank, turned}, 2);
  const auto up = in_heads(key_value_up_.forward(key_value_norm_.forward(down[0])), heads)
                      .split_with_sizes({plain, latent_.value_size}, 3);
  // Their gradient is a sum over all heads: it comes together where they are.
  const auto shared = rotated(down[1].unsqueeze(1), places).expand({x.size(0), heads, x.size(1), turned});
  const auto mixed = causal_attention(path(), at::cat({query[0], rotated(query[1], places)}, 3),
                                      at::cat({up[0], annotate(shared, "batch . length .")}, 3), up[1],
                                      options_.attention_dropout, places.documents);
  return out_.forward(mixed.transpose(1, 2).reshape({x.size(0), x.size(1), heads * latent_.value_size}));
}

}  // namespace lockstep::models

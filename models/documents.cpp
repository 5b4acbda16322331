#include "models/documents.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "models/hooks.h"
#include "models/key_value_cache.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep::models {
namespace {

using at::Tensor;

Tensor after_cached(KeyValueCache& cache, const std::string& path, const Tensor& query, const Tensor& key,
                    const Tensor& value) {
  const auto& all = cache.append(path, key, value);
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(3)));
  return std::get<0>(mesh_ops::attention(query, all.key, all.value, /*causal=*/true, scale, cache.length()));
}

/// Where keys and values are whole.
Tensor attention_here(const Tensor& query, const Tensor& key, const Tensor& value, double dropout,
                      const Documents& documents) {
  if (!documents.are_packed())
    return at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{}, dropout, /*is_causal=*/true,
                                            /*scale=*/std::nullopt, /*enable_gqa=*/query.size(1) != key.size(1));
  mesh_ops::Dropout drops;
  if (mesh_ops::drops_weights(dropout)) drops = {mesh_ops::attention_draws(query, key.size(2)), dropout};
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(3)));
  return std::get<0>(mesh_ops::document_attention(query, key, value, documents.positions, drops, scale));
}

}  // namespace

Documents current_documents() {
  const auto* hooks = Hooks::current();
  const auto positions = hooks ? hooks->positions() : Tensor();
  return positions.defined() ? Documents{positions} : Documents{};
}

Tensor causal_attention(const std::string& path, const Tensor& query, const Tensor& key, const Tensor& value,
                        double share, const Documents& documents) {
  const double dropout = trains() ? share : 0;
  auto* const cache = current_cache();
  const auto run = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return cache ? after_cached(*cache, path, q, k, v) : attention_here(q, k, v, dropout, documents);
  };
  return attend(query, key, value, {run, documents.positions, dropout});
}

Tensor rotate_each(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  const auto wide = x.scalar_type() == c10::kDouble ? x : x.to(c10::kFloat);
  const auto pairs = wide.unflatten(3, {x.size(3) / 2, 2}).unbind(4);
  const auto c = cosines.unsqueeze(1), s = sines.unsqueeze(1);
  return at::stack({pairs[0] * c - pairs[1] * s, pairs[0] * s + pairs[1] * c}, 4).flatten(3).to(x.scalar_type());
}

}  // namespace lockstep::models

#include "models/documents.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "models/hooks.h"
#include "models/key_value_cache.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep::models {
namespace {

using at::Tensor;

/// In float32 at least: what attention makes on its way is not rounded to 16 bits.
Tensor wide(const Tensor& x) { return x.scalar_type() == c10::kDouble ? x : x.to(c10::kFloat); }

/// [b, h, s, d] -> [b, heads, s, d]: each head for all queries that share it.
Tensor repeated(const Tensor& x, int64_t heads) {
  const auto sizes = x.sizes();
  if (sizes[1] == heads) return x;
  const int64_t group = heads / sizes[1];
  return x.unsqueeze(2)
      .expand({sizes[0], sizes[1], group, sizes[2], sizes[3]})
      .reshape({sizes[0], heads, sizes[2], sizes[3]});
}

/// 0, 1, ...: one tensor for each length, for good, as hooks know constants by where they are.
const Tensor& places_of(int64_t length) {
  static std::mutex mutex;
  static std::map<int64_t, Tensor> all;
  const std::lock_guard lock(mutex);
  auto& places = all[length];
  if (!places.defined()) places = at::arange(length, at::kLong);
  return places;
}

/// bool [batch, 1, query, key]: keys of another document, and those that come later. A document is known by its first
/// token's place.
Tensor hidden_keys(const Tensor& positions) {
  const auto places = constant(places_of(positions.size(1)));
  const auto firsts = places - positions;
  const auto is_other = at::ne(firsts.unsqueeze(2), firsts.unsqueeze(1));
  const auto is_later = places.unsqueeze(0) > places.unsqueeze(1);
  return at::logical_or(is_other, is_later).unsqueeze(1);
}

Tensor after_cached(KeyValueCache& cache, const std::string& path, const Tensor& query, const Tensor& key,
                    const Tensor& value) {
  const auto& all = cache.append(path, key, value);
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(3)));
  return std::get<0>(mesh_ops::attention(query, all.key, all.value, /*causal=*/true, scale, cache.length()));
}

/// Where keys and values are whole.
Tensor attention_here(const Tensor& query, const Tensor& key, const Tensor& value, double dropout,
                      const Documents& documents) {
  const int64_t heads = query.size(1);
  const double scale = 1 / std::sqrt(static_cast<double>(query.size(3)));
  if (documents.are_packed() && !(dropout > 0))
    return std::get<0>(mesh_ops::document_attention(query, key, value, documents.positions, scale));
  if (!documents.are_packed())
    return at::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{}, dropout, /*is_causal=*/true,
                                            /*scale=*/std::nullopt, /*enable_gqa=*/heads != key.size(1));
  const auto keys = repeated(wide(key), heads), values = repeated(wide(value), heads);
  const auto scores = at::matmul(wide(query), keys.transpose(-2, -1)) * scale;
  const auto hidden = hidden_keys(documents.positions);
  const auto weights = at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
  return at::matmul(std::get<0>(at::native_dropout(weights, dropout, /*train=*/true)), values).to(query.scalar_type());
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
  return attend(query, key, value, {run, !cache && !(dropout > 0), documents.positions});
}

Tensor rotate_each(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  const auto pairs = wide(x).unflatten(3, {x.size(3) / 2, 2}).unbind(4);
  const auto c = cosines.unsqueeze(1), s = sines.unsqueeze(1);
  return at::stack({pairs[0] * c - pairs[1] * s, pairs[0] * s + pairs[1] * c}, 4).flatten(3).to(x.scalar_type());
}

}  // namespace lockstep::models

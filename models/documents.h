#pragma once
#include <ATen/core/Tensor.h>

#include <string>

namespace lockstep::models {

/// What keeps the documents of packed samples apart (training.pack_documents). Blocks capture it, so that one that is
/// run again in backward sees the documents of its own microbatch.
struct Documents {
  at::Tensor positions;  ///< int64 [batch, length]: of each token in its document, from 0; undefined: not packed

  bool are_packed() const { return positions.defined(); }
};

/// Those of the microbatch that the hooks run; without hooks, or where a sample is one document, none.
Documents current_documents();

/// Causal attention inside of each document: query [batch, heads, length, size], key and value with as many heads or a
/// divisor of them, each for as many neighbouring queries. A share `dropout` of the weights is dropped in training.
///
/// With a cache (current_cache()) the keys and values of `path` that it has come first; there are no documents then.
/// Without documents scaled_dot_product_attention(), with them mesh_ops::document_attention().
at::Tensor causal_attention(const std::string& path, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, double dropout, const Documents& documents);

/// rotate() with rows of the tables for each token: cosines and sines [batch, length, head_size / 2].
at::Tensor rotate_each(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines);

}  // namespace lockstep::models

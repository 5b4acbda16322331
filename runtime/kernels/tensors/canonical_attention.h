#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

#include "runtime/kernels/tensors/canonical_products.h"

/// Attention of canonical numerics on plain CPU tensors (float, double, bfloat16); attention_loops.h says what is
/// computed in which order. Memory of all results is [batch, length, heads, ...]. LibTorch's thread count says how many
/// threads share the work: forward any number, backward one per batch and key-value head at most.
namespace lockstep::kernels {

/// What query rows bring along.
struct AttentionRows {
  at::Tensor places =
      {};  ///< int64 [b, l]: row i attends to the last places[., i] + 1 of its keys alone; undefined: all
  at::Tensor draws = {};  ///< int64 [b, h*g, l, 3]: AttentionDropout::draws; undefined: nothing is dropped
  double dropout = 0;     ///< the share of weights that is
};

/// query [b, h*g, l, d], key [b, h, s, d], value [b, h, s, e] -> output [b, h*g, l, e], log-sum-exp to base 2
/// [b, h*g, l] (float; double for double). With `causal`, query row i attends to keys 0 .. first_row + i. Throws
/// BadInput where a row's first key comes before that of the row before.
std::tuple<at::Tensor, at::Tensor> canonical_attention(const at::Tensor& query, const at::Tensor& key,
                                                       const at::Tensor& value, bool causal, double scale,
                                                       int64_t first_row = 0, const AttentionRows& with = {});

/// Gradients of query, key and value. `rows` says which query rows of all are here (whole leaves of
/// SumTree::over_elements); if given, those of key and value are nodes [nodes, b, h, s, ...] in the wide
/// dtype.
std::tuple<at::Tensor, at::Tensor, at::Tensor> canonical_attention_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& output, const at::Tensor& log_sum, bool causal, double scale, int64_t first_row = 0,
    const ContractedRange& rows = {}, const AttentionRows& with = {});

// The same with keys that come block by block, in their order; blocks but the last have a multiple of 256 keys.

constexpr int64_t kAttentionWeights = 18, kAttentionBlock = 256;  ///< kWeightsOfState, kKeyBlock
constexpr int64_t kAttentionDraws = 3;                            ///< kDrawsOfRow

/// What queries have summed of the keys so far, with those of this block: sums [b, h*g, l, e] and weights [b, h*g, l,
/// 18], all 0 before the first block (AttentionState). Query row i attends to keys 0 .. first_row + i of this block.
std::tuple<at::Tensor, at::Tensor> attention_over(const at::Tensor& query, const at::Tensor& key,
                                                  const at::Tensor& value, const at::Tensor& sums,
                                                  const at::Tensor& weights, bool causal, double scale,
                                                  int64_t first_row);

/// The same, causal, of rows that bring something along.
std::tuple<at::Tensor, at::Tensor> document_attention_over(const at::Tensor& query, const at::Tensor& key,
                                                           const at::Tensor& value, const at::Tensor& sums,
                                                           const at::Tensor& weights, const at::Tensor& places,
                                                           const std::optional<at::Tensor>& draws, double dropout,
                                                           double scale, int64_t first_row);

/// -> output [b, h*g, l, e] and log-sum-exp [b, h*g, l] of all keys, in the dtype of the sums.
std::tuple<at::Tensor, at::Tensor> attention_result(const at::Tensor& sums, const at::Tensor& weights);

/// Query's gradient with this block's part, which is given without it in the wide dtype, and those of the block's
/// keys and values: nodes [nodes, b, h, s, ...] over the query rows, which are [first, first + l) of `all_rows`.
std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_over_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& output, const at::Tensor& log_sum, const at::Tensor& query_gradient, bool causal, double scale,
    int64_t first_row, int64_t first, int64_t all_rows);
std::tuple<at::Tensor, at::Tensor, at::Tensor> document_attention_over_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& output, const at::Tensor& log_sum, const at::Tensor& query_gradient, const at::Tensor& places,
    const std::optional<at::Tensor>& draws, double dropout, double scale, int64_t first_row, int64_t first,
    int64_t all_rows);

}  // namespace lockstep::kernels

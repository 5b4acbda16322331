#pragma once
#include <ATen/core/Tensor.h>

#include <tuple>

#include "runtime/kernels/tensors/canonical_products.h"

/// Attention of canonical numerics on plain CPU tensors (float, double, bfloat16); attention_loops.h says what is
/// computed in which order. Memory of all results is [batch, length, heads, ...]. LibTorch's thread count says how many
/// threads share the work: forward any number, backward one per batch and key-value head at most.
namespace lockstep::kernels {

/// query [b, h*g, l, d], key [b, h, s, d], value [b, h, s, e] -> output [b, h*g, l, e], log-sum-exp to base 2
/// [b, h*g, l] (float; double for double). With `causal`, query row i attends to keys 0 .. first_row + i.
std::tuple<at::Tensor, at::Tensor> canonical_attention(const at::Tensor& query, const at::Tensor& key,
                                                       const at::Tensor& value, bool causal, double scale,
                                                       int64_t first_row = 0);

/// Gradients of query, key and value. `rows` says which query rows of all are here (whole leaves of
/// SumTree::over_elements); if given, those of key and value are nodes [nodes, b, h, s, ...] in the wide
/// dtype.
std::tuple<at::Tensor, at::Tensor, at::Tensor> canonical_attention_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& output, const at::Tensor& log_sum, bool causal, double scale, int64_t first_row = 0,
    const ContractedRange& rows = {});

}  // namespace lockstep::kernels

#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep {

/// scaled_dot_product_attention() that drops a share `dropout` of all weights and scales the others up by
/// 1 / (1 - dropout), with gradients. Which are dropped is a function of the step, the module and the element [sample,
/// head, query, key] of the whole matrix (docs/rng.md): the same on every mesh.
///
/// Composed of ops that have rows of their own: the matrix of all weights is held, 17 bytes a weight in the forward
/// pass, of which 9 stay for the backward one, where attention without dropout holds none.
///
/// REQUIRES: query [b, h*g, l, d], key [b, h, s, d], value [b, h, s, e], on one mesh, of one dtype.
at::Tensor attention_with_dropout(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                  double dropout, bool causal, double scale);

}  // namespace lockstep

#pragma once
#include <ATen/core/Tensor.h>

#include "trainer/attention/row_inputs.h"

namespace lockstep::trainer {

/// Causal attention of sequences that one mesh axis cuts, in which no rank ever has a whole one: keys and values go
/// round from rank to rank, each rank handing on what it has taken before it attends to it (Liu et al., "Ring Attention
/// with Blockwise Transformers for Near-Infinite Context", 2023). A rank's queries meet keys in their order, from the
/// first key of the sequence on, and none behind their own; gradients of keys go straight to who has the keys, as nodes
/// of the tree over query rows. Canonical numerics: the bits of one device. Native: partial results are put together by
/// their log-sum-exp.
///
/// `balanced`: ranks attend to equally many keys, since early and late ones exchange halves of their queries, as in
/// balanced_attention(); keys then go round to the first ranks, too.
///
/// query [b, h*g, l, d], key and value [b, h, l, ...] of one layout but for groups of heads -> [b, h*g, l, e], laid out
/// as the query, of rows that bring along what `options` says. Differentiable, once. Throws BadInput where several axes
/// cut the sequence. REQUIRES: require_ring_fits() of its length.
at::Tensor ring_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const AttentionOptions& options, bool balanced);

}  // namespace lockstep::trainer

#pragma once
#include "trainer/attention/row_inputs.h"

namespace lockstep::trainer {

/// Causal attention of sequences that one mesh axis cuts, in which all ranks attend to equally many keys. Of n ranks
/// rank r has a run of the sequence, and late runs see more keys than early ones; so rank r and rank n - 1 - r exchange
/// the second halves of their queries, and give back what attention gives (the head and the tail of torchtitan's and
/// Megatron's load balancers; where the sequence lies does not change, so nothing else needs to know of it). Keys and
/// values are gathered; their gradients go straight to who has them, as nodes of the tree over query rows. Canonical
/// numerics: the bits of one device.
///
/// query [b, h*g, l, d], key and value [b, h, l, ...] of one layout but for groups of heads -> [b, h*g, l, e], laid out
/// as the query, of rows that bring along what `options` says. Differentiable, once. Throws BadInput where several axes
/// cut the sequence.
at::Tensor balanced_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              const AttentionOptions& options);

}  // namespace lockstep::trainer

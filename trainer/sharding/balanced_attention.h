#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep::trainer {

/// Causal attention of sequences that one mesh axis cuts, in which all ranks attend to equally many keys. Of n ranks
/// rank r has a run of the sequence, and late runs see more keys than early ones; so rank r and rank n - 1 - r exchange
/// the second halves of their queries, and give back what attention gives (the head and the tail of torchtitan's and
/// Megatron's load balancers; where the sequence lies does not change, so nothing else needs to know of it). Keys and
/// values are gathered; their gradients go straight to who has them, as nodes of the tree over query rows. Canonical
/// numerics: the bits of one device.
///
/// `places` [b, l], int64, of packed documents: as of mesh_ops::document_attention(); undefined: a sequence is one.
/// (Ranks have as many rows then; how many keys these see is the documents' business.)
///
/// query [b, h*g, l, d], key and value [b, h, l, ...] of one layout but for groups of heads -> [b, h*g, l, e], laid out
/// as the query. Differentiable, once. Throws BadInput where several axes cut the sequence.
at::Tensor balanced_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              const at::Tensor& places);

}  // namespace lockstep::trainer

#pragma once
#include <ATen/core/Tensor.h>

#include "runtime/tensor/spec.h"

/// How a shard lies in memory. LibTorch decides by the strides of the *global* tensor whether a call of view() is
/// legal; the shards can follow if theirs are related as those are.
namespace lockstep {

/// Whether neighbouring dimensions of a dense tensor that a view may merge can be merged in its shard as well: the
/// shard's dimensions are in the order of the spec's strides, with gaps at most where the layout cuts the inner one of
/// the two. Elements that the spec repeats (stride 0) have one place in the shard as well. Shards of an ordered Partial
/// have their nodes outermost. True of a tensor without elements.
bool is_in_memory_order(const TensorSpec& spec, const at::Tensor& shard);

/// The same values in that order, without gaps: a copy.
at::Tensor in_memory_order(const TensorSpec& spec, const at::Tensor& shard);

/// A view of `shard` in which each element that the spec repeats is there once.
at::Tensor without_repeats(const TensorSpec& spec, at::Tensor shard);

}  // namespace lockstep

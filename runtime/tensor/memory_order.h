#pragma once
#include <ATen/core/Tensor.h>

#include "runtime/tensor/spec.h"

/// In what order the dimensions of a shard lie in memory. LibTorch decides by the strides of the *global* tensor whether a
/// call of view() is legal; the shards can follow if theirs have the same order.
namespace lockstep {

/// Whether the shard of a result is dense, with its dimensions in the order of the spec's strides. Shards of an ordered
/// Partial have their nodes outermost. True of a tensor without elements, and where the spec repeats elements.
bool is_in_memory_order(const TensorSpec& spec, const at::Tensor& shard);

/// The same values in that order: a copy.
at::Tensor in_memory_order(const TensorSpec& spec, const at::Tensor& shard);

}  // namespace lockstep

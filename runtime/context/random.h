#pragma once
#include <ATen/core/Tensor.h>

#include "core/batch_rows.h"
#include "rng/distribution.h"
#include "rng/subarray.h"
#include "runtime/tensor/spec.h"

namespace lockstep {

/// A tensor of random values that are the same on every mesh and layout: element i of the global tensor is a function
/// of (seed, stream, i) alone. Values are drawn in the declared dtype.
at::Tensor draw(const Layout& layout, c10::IntArrayRef sizes, c10::ScalarType dtype,
                const rng::Distribution& distribution, uint64_t seed, uint64_t stream);

/// Fills a part of a tensor with what `subarray` has of it; the strides must be those that the subarray was made for.
void fill_random(const at::Tensor& part, const rng::Distribution& distribution, uint64_t seed, uint64_t stream,
                 const rng::Subarray& subarray);

/// How the generator calls a dtype. BadInput where nothing is drawn in it.
rng::ScalarKind scalar_kind(c10::ScalarType dtype);

/// What local rank `index` holds of the tensor that draw() makes, in the declared dtype, as a plain tensor. Where the
/// first dimension is a batch of `rows.count` samples (or several entries for each) it has the indices of the global
/// batch.
at::Tensor draw_local(const TensorSpec& spec, size_t index, const rng::Distribution& distribution, uint64_t seed,
                      uint64_t stream, const BatchRows& rows = {});

/// The same in another dtype than the tensor's: what its elements are made from.
at::Tensor draw_local(const TensorSpec& spec, c10::ScalarType dtype, size_t index,
                      const rng::Distribution& distribution, uint64_t seed, uint64_t stream,
                      const BatchRows& rows = {});

}  // namespace lockstep

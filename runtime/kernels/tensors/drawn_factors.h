#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

namespace lockstep::composed {

/// What dropout multiplies the weights of attention by, [b, h*g, l, s] in float32, or float64 for such queries: the
/// factors of AttentionDropout, drawn on the device of `draws` by ops on integers. Undefined where nothing is dropped.
/// Some 100 bytes for each weight of one head while it runs, head by head. Throws BadInput as checked_draws() does, but
/// reads no values of a GPU's.
at::Tensor dropout_factors(const std::optional<at::Tensor>& draws, double dropout, const at::Tensor& query,
                           const at::Tensor& key, int64_t first_row);

}  // namespace lockstep::composed

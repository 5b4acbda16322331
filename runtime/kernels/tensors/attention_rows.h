#pragma once
#include <ATen/core/Tensor.h>

/// What query rows of attention bring along (AttentionRows), as kernels may read it. All throw BadInput.
namespace lockstep::kernels {

/// `places` [batch, rows], int64, contiguous (AttentionShape::places). Throws for another dtype or size, and where a
/// row sees an earlier first key than the row before. (That a place is 0 or one more than the one before is for whoever
/// has whole samples to check: here may be any run of rows.)
at::Tensor checked_places(const at::Tensor& places, int64_t batch, int64_t rows);

/// Whether any weights are dropped. Throws for a share outside of [0, 1].
bool drops_weights(double dropout);

/// `draws` [b, h*g, l, 3] of a query [b, h*g, l, d], int64, contiguous (AttentionDropout::draws). Throws for another
/// dtype or size, for none at all, and where `keys` of them, from the first on, are no elements of a stream.
at::Tensor checked_draws(const at::Tensor& draws, at::IntArrayRef query, int64_t first_row, int64_t keys);

}  // namespace lockstep::kernels

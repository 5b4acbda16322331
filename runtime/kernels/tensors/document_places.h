#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep::kernels {

/// `places` [batch, rows], int64, contiguous: what attention's kernels may read (AttentionShape::places). Throws
/// BadInput for another dtype or size, and where a row sees an earlier first key than the row before. (That a place is
/// 0 or one more than the one before is for whoever has whole samples to check: here may be any run of rows.)
at::Tensor checked_places(const at::Tensor& places, int64_t batch, int64_t rows);

}  // namespace lockstep::kernels

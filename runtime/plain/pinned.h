#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep {

/// A CPU tensor of these sizes in memory that a GPU reads and writes by itself, so that copies need not wait; not
/// filled. Blocks are as large as the next power of two of bytes, and are kept for later tensors. REQUIRES: a GPU is in
/// use.
at::Tensor pinned_tensor(c10::IntArrayRef sizes, c10::ScalarType dtype);

}  // namespace lockstep

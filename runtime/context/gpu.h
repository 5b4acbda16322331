#pragma once

namespace lockstep {

/// Loads LibTorch's CUDA part and takes a GPU into use: the `index`-th, counted around where there are fewer. Throws
/// BadInput that says what is missing.
void require_gpu(int index);

}  // namespace lockstep

#pragma once
#include <ATen/core/Tensor.h>

namespace lockstep::models {

/// Rotary position embedding (Su et al., 2021) over interleaved pairs, with Llama 3.1's frequency scaling.
struct RopeOptions {
  int64_t head_size = 64;
  double theta = 500000;
  double scaling_factor = 8;  ///< by which low frequencies slow down; 1: no scaling
  double low_frequency_factor = 1, high_frequency_factor = 4;
  int64_t original_length = 8192;
};

/// Cosines and sines [length, head_size / 2] each, fp32, computed in double by core/'s functions.
struct RopeTables {
  at::Tensor cosines, sines;
};
RopeTables rope_tables(const RopeOptions& options, int64_t length);

/// Rotates x [batch, heads, length, head_size] by its positions, in fp32 at least; the dtype is kept.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines);

}  // namespace lockstep::models

#pragma once
#include <vector>

#include "tools/bench/row.h"

namespace lockstep::bench {

struct NumericsOptions {
  int threads = 1;
  bool large = false;  ///< also blocks of 1B and 8B models, minutes
  PairedOptions paired = {};
};

/// `lockstep bench numerics`: kernels of canonical numerics beside LibTorch's, fp32, in milliseconds.
///
/// mm_MxKxN_nt: linear layers of the Llama debugmodel, M tokens, K inputs, N outputs, beside at::linear; mm_MxKxN_nn:
/// gradients of their inputs beside at::mm; dw_NxKxM: gradients of their weights beside at::mm.
/// attention_fwd_bwd_T<length>_d<size>: causal attention of four heads and its gradients beside LibTorch's fused
/// kernel. Sets LibTorch's thread count.
std::vector<BenchRow> numerics_rows(const NumericsOptions& options = {});

}  // namespace lockstep::bench

#pragma once
#include <vector>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench step`: whole training steps of the Llama debugmodel, 512 tokens each, fp32, one thread, in
/// milliseconds. one_rank_vs_libtorch: a mesh of one rank beside PlainLlama. simulated_2x2_vs_one_rank: four ranks in
/// this process (dp_shard=2,tp=2) beside one. Sets LibTorch's thread count to 1.
std::vector<BenchRow> step_rows(const PairedOptions& options = {});

}  // namespace lockstep::bench

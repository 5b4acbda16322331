#pragma once
#include <vector>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench dispatch`: what an op on tensors of eight elements costs on the mesh device, nanoseconds per call.
///
/// add, mm, view: a cached plan on one local rank beside the plain op. add_four_ranks: four local ranks beside one.
/// add_new_shape: an op whose plan has to be made beside the plain op. Sets LibTorch's thread count to 1.
std::vector<BenchRow> dispatch_rows(const PairedOptions& options = {});

}  // namespace lockstep::bench

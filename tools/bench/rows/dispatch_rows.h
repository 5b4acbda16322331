#pragma once
#include <vector>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench dispatch`: what an op on tensors of eight elements costs on the mesh device, nanoseconds per call.
///
/// add, mm, view: a cached plan on one local rank beside the plain op. add_four_ranks: four local ranks beside one.
/// add_new_shape: an op whose plan has to be made beside the plain op. op_table: milliseconds that a process spends on
/// making the op table and registering it with LibTorch; nothing may have registered it in this process before. Many
/// short pairs: what else runs on the machine interrupts few of them. Sets LibTorch's thread count to 1.
std::vector<BenchRow> dispatch_rows(const PairedOptions& options = {.pairs = 201, .seconds = 0.0005});

}  // namespace lockstep::bench

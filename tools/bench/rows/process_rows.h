#pragma once
#include <functional>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench processes`: steps of the Llama debugmodel over two processes of one thread each, canonical numerics,
/// in milliseconds. Rows processes_*: fully sharded, over shared memory; peers: threads = the same step by one process
/// on one rank with two threads; blocking = the same two processes where nothing is under way while a block computes.
/// Rows async_tp_*: tensor parallel with parallelism.enable_async_tensor_parallel beside blocking = without, over
/// shared memory and over TCP on loopback. Rows *gather_wait_* and *reduce_wait_*: how long a step stands still for
/// gathers and reductions, with and without that; 1 - ratio is the fraction that is overlapped.
///
/// Rows whose names fit `patterns`, for `seconds` each; `report` gets them as they come.
void measure_processes(const std::string& patterns, double seconds, const std::function<void(const BenchRow&)>& report);

}  // namespace lockstep::bench

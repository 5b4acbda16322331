#pragma once
#include <functional>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench collectives`: redistributions of one tensor between two processes, over shared memory and over TCP
/// on loopback, in microseconds. The size in a row's name is that of the whole tensor. Peers, in the same two
/// processes: memcpy = each copies as many bytes as the tensor has, half of them out of memory that the other wrote;
/// sockets = each sends and receives, with plain calls on a TCP connection of its own, as many bytes as the collective
/// does; gloo = torch.distributed.all_reduce in two
/// Python processes, if LOCKSTEP_TORCH_PYTHON names a python3 that has torch. Sets LibTorch's thread count to 1.
///
/// Rows whose names fit `patterns`, for `seconds` each; `report` gets them as they come.
void measure_collectives(const std::string& patterns, double seconds,
                         const std::function<void(const BenchRow&)>& report);

}  // namespace lockstep::bench

#pragma once
#include <functional>

#include "tools/bench/row.h"

namespace lockstep::bench {

/// `lockstep bench collectives`: redistributions of one tensor between two processes, over shared memory and over TCP
/// on loopback, in microseconds. The size in a row's name is that of the whole tensor. Peers, in the same two
/// processes (plain_collectives.h):
///
///   memcpy   each copies as many bytes as the tensor has, half of them out of memory that the other wrote. A sum reads
///            more than that: both parts of what it writes.
///   sockets  each sends and receives, with plain calls on a TCP connection of its own as the system makes it, as many
///            bytes as the collective does. A gather also copies the own part, a sum adds.
///   by hand  the whole of the work: in memory with the two meetings that it takes, over TCP with our congestion
///            control. What is left beyond it is Lockstep's: headers, checksums, new tensors, dispatch.
///   gloo     torch.distributed.all_reduce in two Python processes, where there is a Python that has torch
///   (tools/python_env)
///
/// A row for each peer. Rows whose names fit `patterns`, for `seconds` each; `report` gets them as they come. Sets
/// LibTorch's thread count to 1.
void measure_collectives(const std::string& patterns, double seconds,
                         const std::function<void(const BenchRow&)>& report);

}  // namespace lockstep::bench

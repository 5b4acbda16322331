#pragma once
#include <memory>

#include "runtime/context/traffic.h"
#include "tools/bench/peers/two_processes.h"

/// What collectives of two processes are measured beside: the same two processes, without Lockstep.
namespace lockstep::bench {

/// Each copies as many bytes as the whole tensor has, half of them out of memory that the other wrote. Nobody asks
/// whether the other is ready, and nothing is added up.
std::function<void()> plain_copy(const Ends& ends, int64_t bytes);

/// Each sends so many bytes and receives as many. They stay where they arrive.
std::function<void()> plain_exchange(const std::shared_ptr<FileDescriptor>& socket, int64_t bytes);

/// All that the collective has to do, of a tensor of so many floats, as one would write it for two processes. Both
/// meet, so that the other's part is there; copy both halves, or have LibTorch add both parts to a new place; and meet
/// again, so that the parts may be written.
std::function<void()> by_hand_in_memory(const Ends& ends, CollectiveKind kind, int64_t floats);

/// The same over a TCP connection, without checksums: plain_exchange(), then the own half is copied beside what came,
/// or both parts are added.
std::function<void()> by_hand_over(const std::shared_ptr<FileDescriptor>& socket, CollectiveKind kind, int64_t floats);

}  // namespace lockstep::bench

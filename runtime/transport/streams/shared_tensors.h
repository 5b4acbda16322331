#pragma once
#include "runtime/transport/shared_memory/shared_arena.h"

namespace lockstep {

/// From the first call on, tensors of kLeastSharedBytes or more on the CPU lie in memory that the transport can give to
/// other ranks of this host to read (MemoryStream): one copy instead of two. All of this process's, for as long as it
/// lives. Null, and nothing changes, if the system gives no such memory or this is a fork of a process that called.
inline constexpr size_t kLeastSharedBytes = size_t{1} << 15;
const SharedArena* share_tensors();

}  // namespace lockstep

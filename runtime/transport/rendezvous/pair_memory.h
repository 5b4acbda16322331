#pragma once
#include <array>
#include <cstdint>

#include "core/files/sealed_memory.h"

namespace lockstep {

inline constexpr size_t kPipeBytes = size_t{1} << 19;

/// Of a pipe, in shared memory: how many bytes have gone in and come out since it was made. Only the writer stores
/// `written`, only the reader what is below; each in a cache line of its own.
struct PipeCounters {
  alignas(64) uint64_t written = 0;
  alignas(64) uint64_t read = 0;
  uint64_t fetched = 0;  ///< how many payloads were read where they lie (remote_memory.h)
};

/// What one of the two says of itself.
struct SideState {
  alignas(64) uint32_t asleep = 0;     ///< whoever moves bytes takes it back, and rings
  alignas(64) uint32_t can_fetch = 0;  ///< whether it can read the other's memory
  int32_t core = -1;                   ///< where it ran when it moved bytes last
  uint32_t withdrawn = 0;              ///< whether nothing of its memory is to be read any more
  uint32_t has_probe = 0;              ///< whether the rest is there, which tells if memory can be read:
  int32_t process = 0;
  uint64_t probe_address = 0, probe_value = 0;
  uint64_t arena_address = 0, arena_bytes = 0;  ///< of the memory in which its tensors lie, if it gives us that
  uint32_t has_arena = 0;                       ///< whether a descriptor of it is on the way
  uint32_t maps = 0;                            ///< whether it can read the arena that we gave it
};

/// What two ranks of one host share: a pipe each way, and what they say of themselves. Side 0 writes pipe 0.
struct PairMemory {
  std::array<PipeCounters, 2> counters;
  std::array<SideState, 2> sides;
  alignas(4096) std::array<std::array<std::byte, kPipeBytes>, 2> bytes;
};

/// New memory without a name: it is gone with the last process that has it. Not open if the system gives none.
FileDescriptor create_pair_memory();

/// A mapping of it. Throws TransportError if it is something else.
class MappedPair {
 public:
  explicit MappedPair(const FileDescriptor& memory) : memory_(memory, sizeof(PairMemory)) {}

  PairMemory& operator*() const { return *static_cast<PairMemory*>(memory_.get()); }
  PairMemory* operator->() const { return &**this; }

 private:
  MappedMemory memory_;
};

}  // namespace lockstep

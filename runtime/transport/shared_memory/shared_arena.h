#pragma once
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/files/sealed_memory.h"
#include "runtime/transport/shared_memory/free_blocks.h"

namespace lockstep {

/// Memory of this process that others may be given to read. Pages cost something only once they are written; those of a
/// block of kReturned bytes or more go back to the system with it, those of smaller ones are kept for the next.
class SharedArena {
 public:
  static constexpr size_t kReturned = size_t{1} << 28;

  /// Room for so many bytes. Null if the system gives none.
  static std::unique_ptr<SharedArena> create(size_t bytes);

  /// In a forked child, whose writes would be seen by its parent: nothing can be read or written from now on, and there
  /// is no room. It calls nothing but the system.
  void disown();
  bool is_ours() const { return is_ours_; }

  /// A block, 64-byte aligned; null if there is no room.
  void* allocate(size_t bytes);
  /// REQUIRES: a block that allocate() gave.
  void release(void* block);
  bool holds(const void* start, size_t bytes = 1) const;

  /// What other processes may read it by (MappedMemory); not open if the system gives none.
  FileDescriptor read_only() const;
  uint64_t address() const { return reinterpret_cast<uintptr_t>(mapped_.get()); }
  size_t bytes() const { return mapped_.bytes(); }

 private:
  SharedArena(FileDescriptor memory, size_t bytes);

  FileDescriptor memory_;
  MappedMemory mapped_;
  bool is_ours_ = true;
  std::mutex mutex_;
  FreeBlocks free_;
  std::unordered_map<uint64_t, uint64_t> taken_;  ///< sizes by where they start
};

}  // namespace lockstep

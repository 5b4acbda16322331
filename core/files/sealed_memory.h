#pragma once
#include <cstddef>

#include "core/files/file_descriptor.h"

namespace lockstep {

/// New memory without a name, all zero: it is gone with the last process that has it, and nobody can change its size.
/// Not open if the system gives none.
FileDescriptor create_sealed_memory(size_t bytes);

/// A mapping of it, shared with the other processes that have it.
class MappedMemory {
 public:
  /// Throws TransportError if that is not what create_sealed_memory() makes of so many bytes: who could shrink it
  /// could kill us.
  MappedMemory(const FileDescriptor& memory, size_t bytes, bool writable = true);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  void* get() const { return mapped_; }
  size_t bytes() const { return bytes_; }

 private:
  void* mapped_;
  size_t bytes_;
};

}  // namespace lockstep

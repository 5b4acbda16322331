#include "core/files/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

FileDescriptor create_sealed_memory(size_t bytes) {
  FileDescriptor memory(::memfd_create("lockstep", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool made = memory.is_open() && ::ftruncate(memory.get(), static_cast<off_t>(bytes)) == 0 &&
                    ::fcntl(memory.get(), F_ADD_SEALS, kSeals) == 0;
  return made ? std::move(memory) : FileDescriptor();
}

MappedMemory::MappedMemory(const FileDescriptor& memory, size_t bytes, bool writable) : bytes_(bytes) {
  struct stat status {};
  if (::fstat(memory.get(), &status) != 0 || status.st_size != static_cast<off_t>(bytes) ||
      ::fcntl(memory.get(), F_GET_SEALS) != kSeals)
    fail<TransportError>("what should be memory shared with a process of this host is something else");
  mapped_ = ::mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, memory.get(), 0);
  if (mapped_ == MAP_FAILED)
    fail<TransportError>("memory shared with a process of this host cannot be mapped: {}", std::strerror(errno));
  if (!writable) ::madvise(mapped_, bytes, MADV_DONTDUMP);  // who owns it has it in its own core file
}

MappedMemory::~MappedMemory() { ::munmap(mapped_, bytes_); }

}  // namespace lockstep

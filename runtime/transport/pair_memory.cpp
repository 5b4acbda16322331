#include "runtime/transport/pair_memory.h"

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

FileDescriptor create_pair_memory() {
  FileDescriptor memory(::memfd_create("lockstep", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool made = memory.is_open() && ::ftruncate(memory.get(), sizeof(PairMemory)) == 0 &&
                    ::fcntl(memory.get(), F_ADD_SEALS, kSeals) == 0;
  return made ? std::move(memory) : FileDescriptor();
}

MappedPair::MappedPair(const FileDescriptor& memory) {
  struct stat status {};
  if (::fstat(memory.get(), &status) != 0 || status.st_size != static_cast<off_t>(sizeof(PairMemory)) ||
      ::fcntl(memory.get(), F_GET_SEALS) != kSeals)
    fail<TransportError>("what should be memory shared with a rank of this host is something else");
  void* mapped = ::mmap(nullptr, sizeof(PairMemory), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED)
    fail<TransportError>("memory shared with a rank cannot be mapped: {}", std::strerror(errno));
  memory_ = static_cast<PairMemory*>(mapped);
}

MappedPair::~MappedPair() { ::munmap(memory_, sizeof(PairMemory)); }

}  // namespace lockstep

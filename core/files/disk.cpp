#include "core/files/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/files/file_descriptor.h"

namespace lockstep {

int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -1;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

int flush_folder(const std::string& folder) {
  const FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.is_open()) return -1;
  return ::fsync(descriptor.get()) == 0 || errno == EINVAL ? 0 : -1;  // EINVAL: this file system has nothing to flush
}

}  // namespace lockstep

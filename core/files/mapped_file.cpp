#include "core/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace lockstep {

/// O_NONBLOCK: a FIFO is opened without waiting for who writes to it, and then refused. Nothing can be mapped of an
/// empty file.
MappedFile::MappedFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!descriptor_.is_open()) fail<FileError>("{}: cannot be opened: {}.", path, std::strerror(errno));
  if (::fstat(descriptor_.get(), &first_) != 0 || !S_ISREG(first_.st_mode))
    fail<FileError>("{}: is not a regular file.", path);
  if (first_.st_size == 0) return;
  const auto size = static_cast<size_t>(first_.st_size);
  auto* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_.get(), 0);
  if (start == MAP_FAILED) fail<FileError>("{}: cannot be mapped: {}.", path, std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::move(other.descriptor_)),
      first_(other.first_),
      bytes_(std::exchange(other.bytes_, {})) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::require_unchanged() const {
  struct stat now {};
  if (::fstat(descriptor_.get(), &now) != 0) fail<FileError>("{}: cannot be read: {}.", path_, std::strerror(errno));
  if (now.st_size != first_.st_size)
    fail<FileError>("{}: changed while it was in use: it had {} bytes, now {}.", path_, first_.st_size, now.st_size);
  if (now.st_mtim.tv_sec != first_.st_mtim.tv_sec || now.st_mtim.tv_nsec != first_.st_mtim.tv_nsec)
    fail<FileError>("{}: changed while it was in use: it was written to.", path_);
}

}  // namespace lockstep

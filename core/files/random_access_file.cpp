#include "core/files/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace lockstep {

/// O_NONBLOCK: a FIFO is opened without waiting for who writes to it, and then refused.
RandomAccessFile::RandomAccessFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!descriptor_.is_open()) fail<FileError>("{}: cannot be opened: {}.", path, std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor_.get(), &status) != 0 || !S_ISREG(status.st_mode))
    fail<FileError>("{}: is not a regular file.", path);
  size_ = status.st_size;
}

void RandomAccessFile::read(int64_t at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const auto count = ::pread(descriptor_.get(), out.data(), out.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail<FileError>("{}: cannot be read at byte {}: {}.", path_, at, std::strerror(errno));
    if (count == 0) fail<FileError>("{}: ends at byte {}, {} bytes more were expected.", path_, at, out.size());
    at += count;
    out = out.subspan(static_cast<size_t>(count));
  }
}

std::string RandomAccessFile::text(int64_t most) const {
  if (size_ > most) fail<FileError>("{}: is of {} bytes, {} are the most that it can be.", path_, size_, most);
  std::string text(static_cast<size_t>(size_), '\0');
  read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace lockstep

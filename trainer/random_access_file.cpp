#include "trainer/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace lockstep::trainer {

RandomAccessFile::RandomAccessFile(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail<FileError>("{}: cannot be opened: {}.", path, std::strerror(errno));
  struct stat status {};
  const bool regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) ::close(descriptor_);
  if (!regular) fail<FileError>("{}: is not a regular file.", path);
  size_ = status.st_size;
}

RandomAccessFile::~RandomAccessFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

void RandomAccessFile::read(int64_t at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const auto count = ::pread(descriptor_, out.data(), out.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail<FileError>("{}: cannot be read at byte {}: {}.", path_, at, std::strerror(errno));
    if (count == 0) fail<FileError>("{}: ends at byte {}, {} bytes more were expected.", path_, at, out.size());
    at += count;
    out = out.subspan(static_cast<size_t>(count));
  }
}

}  // namespace lockstep::trainer

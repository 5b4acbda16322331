#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/files/file_descriptor.h"

namespace lockstep {

/// A regular file in memory, as it was when it was opened; safe to share between threads.
class MappedFile {
 public:
  /// FileError when the file is missing, unreadable or not a regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

  /// All of it. Who reads calls require_unchanged() before, as the system ends a process that reads beyond the end of a
  /// file that became shorter, and after, as what was read may be of two files.
  std::span<const std::byte> bytes() const { return bytes_; }

  /// FileError if the file was written to since it was opened, by its size and the time of its last change.
  void require_unchanged() const;

 private:
  std::string path_;
  FileDescriptor descriptor_;
  struct stat first_ {};
  std::span<const std::byte> bytes_;
};

}  // namespace lockstep

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/files/file_descriptor.h"

namespace lockstep {

/// A regular file, open for reading at any position; safe to share between threads.
class RandomAccessFile {
 public:
  /// FileError when the file is missing, unreadable or not a regular file.
  explicit RandomAccessFile(const std::string& path);

  const std::string& path() const { return path_; }
  /// The size when it was opened.
  int64_t size() const { return size_; }

  /// Fills `out` from position `at`. FileError when the file ends before that or cannot be read.
  void read(int64_t at, std::span<std::byte> out) const;

  /// All of it. FileError when that is more than `most` bytes.
  std::string text(int64_t most) const;

 private:
  std::string path_;
  FileDescriptor descriptor_;
  int64_t size_ = 0;
};

}  // namespace lockstep

#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// Writes a file that appears whole or not at all: bytes go to a temporary file beside it, which is flushed to the disk
/// and renamed over the target; then the folder is flushed. A crash leaves the old file.
///
/// Every failure (missing folder, full disk, no permission) is a FileError with the path and the system's reason; the
/// temporary file is removed. A target that is not a regular file (/dev/stdout, a pipe) is written in place.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  /// Throws the bytes away unless `commit` has succeeded.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends bytes.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes);

  /// Puts the file in place; to be called once, nothing may be written afterwards.
  void commit();

 private:
  [[noreturn]] void failed(std::string_view what, const std::string& path) const;
  void close();

  std::string path_;
  std::string temporary_;  // empty when written in place
  int descriptor_ = -1;
};

/// Of a temporary file that a crash left: the name that it was to get. Empty if the name is none of AtomicFile's.
std::string_view name_before_crash(std::string_view temporary);

/// One call for content that is already in memory.
void write_file_atomically(const std::string& path, std::string_view content);

}  // namespace lockstep

#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/random_access_file.h"

/// Safetensors files: an 8-byte little-endian header length, a JSON header, the tensors' bytes. docs/checkpoint.md.
///
/// The reader is strict: whatever is not exactly what the format allows is a FileError that names the file; no input
/// makes it crash, hang or allocate more than the file's own size.
namespace lockstep::trainer {

/// Bytes of one element of a dtype in safetensors' spelling ("F32", "BF16", "I64" ...); 0 for an unknown name.
int64_t element_size(std::string_view dtype);

/// Product of `shape` in elements; -1 when an entry is negative or the product does not fit in 62 bits.
int64_t element_count(std::span<const int64_t> shape);

/// A tensor to write. The bytes are borrowed.
struct TensorBytes {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes a file that appears whole or not at all, synced to the disk. FileError when it cannot.
void write_safetensors(const std::string& path, std::span<const TensorBytes> tensors);

class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;
    std::vector<int64_t> shape;
    int64_t begin = 0;  ///< in the file
    int64_t size = 0;   ///< in bytes
  };

  /// Opens the file and checks its whole structure, but reads no tensor.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  void read(const Entry& entry, std::span<std::byte> out) const { file_.read(entry.begin, out); }

 private:
  RandomAccessFile file_;
  std::map<std::string, Entry> entries_;
};

}  // namespace lockstep::trainer

#include "trainer/checkpoint/safetensors.h"

#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "fuzz/inputs/target.h"

namespace lockstep {

/// A file is refused, or all its tensors can be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int memory = ::memfd_create("safetensors", 0);
  fuzz::require(::ftruncate(memory, 0) == 0 && ::pwrite(memory, data, size, 0) == static_cast<ssize_t>(size),
                "written");
  try {
    const trainer::SafetensorsFile file("/proc/self/fd/" + std::to_string(memory));
    for (const auto& [name, entry] : file.entries()) {
      std::vector<std::byte> bytes(static_cast<size_t>(entry.size));
      file.read(entry, bytes);
    }
  } catch (const FileError&) {
  }
  return 0;
}

}  // namespace lockstep

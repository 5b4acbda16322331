#include "trainer/checkpoint/safetensors.h"

#include "core/error.h"
#include "fuzz/inputs/target.h"

namespace lockstep {

/// A file is refused, or all its tensors can be read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const trainer::SafetensorsFile file(fuzz::file_of(data, size));
    for (const auto& [name, entry] : file.entries()) {
      std::vector<std::byte> bytes(static_cast<size_t>(entry.size));
      file.read(entry, bytes);
    }
  } catch (const FileError&) {
  }
  return 0;
}

}  // namespace lockstep

#include "core/error.h"
#include "fuzz/inputs/target.h"
#include "trainer/weights/torch_checkpoint/stored_tensor.h"

/// LibTorch's reader of archives leaves some bytes behind where it refuses one.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() { return "leak:mz_zip_reader"; }

namespace lockstep {

/// What torch.save wrote is refused, or has the sizes that were asked for, of numbers that are there.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const RandomAccessFile file(fuzz::file_of(data, size));
    const auto tensor = trainer::read_stored_tensor(file, 0, static_cast<int64_t>(size), "input", "float32", {3, 4});
    fuzz::require(tensor.clone().numel() == 12, "whole");
  } catch (const FileError&) {
  }
  return 0;
}

}  // namespace lockstep

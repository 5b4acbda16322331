#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "fuzz/inputs/target.h"
#include "trainer/weights/torch_checkpoint/stored_tensor.h"

/// LibTorch's reader of archives leaves some bytes behind where it refuses one.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:mz_zip_reader";
}  // NOLINT(bugprone-reserved-identifier)

namespace lockstep {

/// What torch.save wrote is refused, or has the sizes that were asked for, of numbers that are there.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int memory = ::memfd_create("torch_tensor", 0);
  fuzz::require(::ftruncate(memory, 0) == 0 && ::pwrite(memory, data, size, 0) == static_cast<ssize_t>(size),
                "written");
  try {
    const RandomAccessFile file("/proc/self/fd/" + std::to_string(memory));
    const auto tensor = trainer::read_stored_tensor(file, 0, static_cast<int64_t>(size), "input", "float32", {3, 4});
    fuzz::require(tensor.clone().numel() == 12, "whole");
  } catch (const FileError&) {
  }
  return 0;
}

}  // namespace lockstep

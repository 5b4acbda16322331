#include "core/error.h"
#include "fuzz/inputs/target.h"
#include "trainer/weights/torch_checkpoint/saved_tensors.h"

namespace lockstep {

/// .metadata is refused, or its tensors are whole: as many elements in their parts as they have.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    for (const auto& [name, tensor] :
         trainer::saved_tensors(fuzz::text_of(data, size), "input", [](const std::string&) { return true; })) {
      int64_t elements = 0;
      for (const auto& part : tensor.parts) elements += part.box.elements();
      fuzz::require(elements == Box::whole(tensor.sizes).elements(), "whole");
    }
  } catch (const FileError&) {
  }
  return 0;
}

}  // namespace lockstep

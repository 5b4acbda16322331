#include "runtime/plain/pinned.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>

namespace lockstep {

at::Tensor pinned_tensor(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  auto* allocator = at::globalContext().getPinnedMemoryAllocator(c10::kCUDA);
  const auto bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * c10::elementSize(dtype);
  const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, allocator->allocate(bytes), allocator);
  return at::empty({0}, at::dtype(dtype)).set_(storage, 0, sizes);
}

}  // namespace lockstep

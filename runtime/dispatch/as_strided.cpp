#include "runtime/dispatch/as_strided.h"

#include <ATen/Functions.h>

#include <optional>

#include "core/error.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using at::Tensor;

struct Windows {
  int64_t count, size, step;
};

/// What sizes and strides say, if they keep all dimensions but the last and slide over that one.
std::optional<Windows> windows_of(const Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const auto dims = static_cast<size_t>(self.dim());
  if (dims == 0 || sizes.size() != dims + 1 || strides.size() != dims + 1) return std::nullopt;
  const auto last = self.stride(-1);
  for (size_t d = 0; d + 1 < dims; ++d)
    if (sizes[d] != self.sizes()[d] || (sizes[d] > 1 && strides[d] != self.strides()[d])) return std::nullopt;
  const Windows windows{sizes[dims - 1], sizes[dims], last > 0 ? strides[dims - 1] / last : 0};
  const bool slides = windows.step > 0 && windows.step * last == strides[dims - 1] && strides[dims] == last;
  const bool any = windows.count > 0 && windows.size > 0;
  if (!slides || !any || (windows.count - 1) * windows.step + windows.size > self.size(-1)) return std::nullopt;
  return windows;
}

Tensor as_strided(const Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<int64_t> offset) {
  const bool from_start = offset.value_or(0) == 0;
  if (from_start && sizes == self.sizes() && strides == self.strides()) return at::alias(self);
  if (const auto windows = from_start ? windows_of(self, sizes, strides) : std::nullopt)
    return self.unfold(-1, windows->size, windows->step).narrow(-2, 0, windows->count);
  fail<BadInput>("as_strided has no meaning on a sharded tensor ({}); use view, transpose, narrow or select",
                 spec_of(self).text());
}

}  // namespace

void register_as_strided(torch::Library& backend, torch::Library& autograd) {
  backend.impl("as_strided", TORCH_FN(as_strided));
  autograd.impl("as_strided", TORCH_FN(as_strided));
}

}  // namespace lockstep

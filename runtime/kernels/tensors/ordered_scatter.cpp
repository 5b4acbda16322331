#include "runtime/kernels/tensors/ordered_scatter.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <ATen/OpMathType.h>

#include "core/error.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

/// rows [n, size] of values; at, of [n, count].
template <class T>
void write_rows(const Tensor& rows, const Tensor& at, const Tensor& of, Write write) {
  const int64_t size = rows.size(-1), count = at.size(-1), n = count > 0 ? at.numel() / count : 0;
  auto* to = rows.mutable_data_ptr<T>();
  const auto* index = at.const_data_ptr<int64_t>();
  const auto* from = of.const_data_ptr<T>();
  for (int64_t row = 0; row < n; ++row, to += size, index += count, from += count)
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = index[i];
      if (place < 0 || place >= size)
        fail<BadInput>("index {} is out of bounds for a dimension of size {}", place, size);
      to[place] = write == Write::kAdd ? static_cast<T>(to[place] + from[i]) : from[i];
    }
}

/// [..., what `dim` was], without gaps.
Tensor along_last(const Tensor& x, int64_t dim, c10::ScalarType dtype) {
  return x.movedim(dim, -1).to(dtype).contiguous();
}

}  // namespace

Tensor ordered_scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, Write write) {
  if (self.dim() == 0) return ordered_scatter(self.unsqueeze(0), 0, index, source, write).squeeze(0);
  if (index.dim() == 0) return ordered_scatter(self, dim, index.unsqueeze(0), source, write);
  if (source.dim() == 0) return ordered_scatter(self, dim, index, source.unsqueeze(0), write);
  auto result = self.clone(at::MemoryFormat::Contiguous);
  auto part = result, of = source;
  for (int64_t d = 0; d < index.dim(); ++d) {
    of = of.narrow(d, 0, index.size(d));
    if (d != (dim < 0 ? dim + self.dim() : dim)) part = part.narrow(d, 0, index.size(d));
  }
  const auto wide = at::toOpMathType(self.scalar_type());
  const auto rows = along_last(part, dim, wide);
  const auto at = along_last(index, dim, c10::kLong);
  of = along_last(of, dim, wide);
  AT_DISPATCH_ALL_TYPES_AND(c10::kBool, wide, "ordered_scatter", [&] { write_rows<scalar_t>(rows, at, of, write); });
  part.movedim(dim, -1).copy_(rows);
  return result;
}

}  // namespace lockstep::kernels

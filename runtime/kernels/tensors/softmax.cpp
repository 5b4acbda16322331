#include "runtime/kernels/tensors/softmax.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/rows/softmax_loops.h"
#include "runtime/kernels/tensors/gpu_numbers.h"
#include "runtime/kernels/tensors/row_parts.h"
#include "runtime/kernels/tensors/widened.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

/// The dimension as rows.
Tensor rows_along(int64_t dim, const Tensor& tensor) { return widened(tensor.movedim(dim, -1)); }

/// What was computed in rows, as `like` is.
Tensor as_was(const Tensor& rows, int64_t dim, const Tensor& like) {
  return rows.movedim(-1, dim).contiguous().to(like.scalar_type());
}

template <class Loop>
Tensor map(const Tensor& x, int64_t dim, const Loop& loop, void (*on_gpu)(loops::Rows, const float*, float*)) {
  const auto rows = rows_along(dim, x), out = at::empty_like(rows);
  if (is_on_gpu(rows, "softmax")) {
    on_gpu(rows_of(out), floats(rows), to_floats(out));
    return as_was(out, dim, x);
  }
  AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "softmax", [&] {
    const auto* from = rows.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    by_written_parts(rows_of(out), to, [=](loops::Rows part, int64_t row) {
      const int64_t first = row * part.width;
      loop(part, from + first, to + first);
    });
  });
  return as_was(out, dim, x);
}

template <class Loop>
Tensor map_pairs(const Tensor& gradient, const Tensor& result, int64_t dim, const Loop& loop,
                 void (*on_gpu)(loops::Rows, const float*, const float*, float*)) {
  const auto slopes = rows_along(dim, gradient), rows = rows_along(dim, result.to(gradient.scalar_type()));
  const auto out = at::empty_like(slopes);
  if (is_on_gpu(slopes, "softmax_backward")) {
    on_gpu(rows_of(out), floats(slopes), floats(rows), to_floats(out));
    return as_was(out, dim, gradient);
  }
  AT_DISPATCH_FLOATING_TYPES(slopes.scalar_type(), "softmax_backward", [&] {
    const auto *g = slopes.const_data_ptr<scalar_t>(), *y = rows.const_data_ptr<scalar_t>();
    auto* to = out.mutable_data_ptr<scalar_t>();
    by_written_parts(rows_of(out), to, [=](loops::Rows part, int64_t row) {
      const int64_t first = row * part.width;
      loop(part, g + first, y + first, to + first);
    });
  });
  return as_was(out, dim, gradient);
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim) {
  const auto loop = [](auto rows, const auto* from, auto* to) { loops::softmax(rows, from, to); };
  return map(x, dim, loop, cuda::canonical::softmax);
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  const auto loop = [](auto rows, const auto* from, auto* to) { loops::log_softmax(rows, from, to); };
  return map(x, dim, loop, cuda::canonical::log_softmax);
}

Tensor softmax_backward(const Tensor& g, const Tensor& y, int64_t dim) {
  const auto loop = [](auto rows, const auto* slopes, const auto* from, auto* to) {
    loops::softmax_backward(rows, slopes, from, to);
  };
  return map_pairs(g, y, dim, loop, cuda::canonical::softmax_backward);
}

Tensor log_softmax_backward(const Tensor& g, const Tensor& y, int64_t dim) {
  const auto loop = [](auto rows, const auto* slopes, const auto* from, auto* to) {
    loops::log_softmax_backward(rows, slopes, from, to);
  };
  return map_pairs(g, y, dim, loop, cuda::canonical::log_softmax_backward);
}

}  // namespace lockstep::kernels
